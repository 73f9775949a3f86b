"""Tools: their declaration to a model, and selectors of Agents for them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from beckon_contract.fields import Fields
from beckon_contract.knative.delivery import Reference
from beckon_contract.schema.lowering import Profile, lower, lower_strict

MAX_DESCRIPTION = 1024  # characters; OpenAI refuses the whole request above
Dispatch = Literal["broker", "direct"]

CallOrigin = Literal["api", "dialect", "recovered"]
"""How a call was obtained: from the server's `tool_calls`, from the text of a dialect that writes calls
as text, or from markup that leaked into the text of a server with native tool calling."""

ORIGIN_ATTRIBUTE = "beckonorigin"
"""The extension attribute of a call event with its `CallOrigin`; Triggers and policies can filter by it."""

TextCallRule = Literal["Allow", "Approve", "Refuse"]
"""The treatment of a call that was read from text: made, made once a person allows it, or refused."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One EventType as a callable tool.

    `name` is what the model sees, unique in its catalogue; `parameters` a JSON Schema 2020-12
    object that arguments are validated against; `parameters_from` the place it was read from;
    `timeout` in seconds, `None` for the agent's default; `source` the CloudEvents source that
    the call must have, `None` for the agent's own; `routes` the names of the Triggers of
    `broker` that pass the call, empty only with `dispatch` direct, which goes to `reference`,
    whose URL is `address`.
    """

    name: str
    namespace: str
    event_type: str
    type: str
    source: str | None
    description: str
    parameters: Mapping[str, Any]
    parameters_from: str
    timeout: float | None = None
    requires_approval: bool = False
    dispatch: Dispatch = "broker"
    idempotent: bool = False
    read_only: bool = False
    destructive: bool | None = None
    text_calls: TextCallRule = "Allow"
    broker: str = "default"
    routes: tuple[str, ...] = ()
    reference: Reference | None = None
    address: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An EventType meant to be a tool, but refused.

    `reason` is one CamelCase word for a condition, `field` the path to change, `message` what
    is wrong and what to write instead. A manifest that could not be read has no `event_type`.
    """

    event_type: str
    namespace: str
    reason: str
    field: str
    message: str
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """An EventType without a tool, by choice or by rule.

    This is no mistake.
    """

    event_type: str
    namespace: str
    reason: str
    message: str
    origin: str = ""


def declare(tool: Tool, profile: Profile = Profile.OPENAI) -> dict[str, Any]:
    """Return a tool as an element of the OpenAI `tools` array, lowered for a provider.

    A schema that strict mode cannot express is declared without it; arguments are validated
    against `tool.parameters` either way.
    """
    function: dict[str, Any] = {"name": tool.name, "description": _cut(tool.description)}
    strict = lower_strict(tool.parameters) if profile == Profile.OPENAI_STRICT else None
    if strict is not None:
        return {"type": "function", "function": {**function, "parameters": strict, "strict": True}}
    plain = Profile.OPENAI if profile == Profile.OPENAI_STRICT else profile
    return {"type": "function", "function": {**function, "parameters": lower(tool.parameters, plain)}}


def _cut(description: str) -> str:
    return description if len(description) <= MAX_DESCRIPTION else description[: MAX_DESCRIPTION - 1] + "…"


Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]

_TOOLS = ("names", "selector")
_SELECTOR = ("matchLabels", "matchExpressions")
_EXPRESSION = ("key", "operator", "values")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One line of a label selector's matchExpressions (Kubernetes' LabelSelector)."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Return True if labels meet the requirement.

        NotIn holds if the label is absent, as in Kubernetes.
        """
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None


@dataclass(frozen=True, slots=True)
class ToolSelector:
    """A selection of Tools by names and labels.

    A Tool is selected if it meets every part that is set.

    `names` are names of EventTypes or of tools as the model sees them; `None` means any.
    """

    names: frozenset[str] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    requirements: tuple[Requirement, ...] = ()

    def selects(self, tool: Tool) -> bool:
        """Return True if the tool is selected."""
        return self.matches((tool.name, tool.event_type), tool.labels)

    def matches(self, names: Collection[str], labels: Mapping[str, str]) -> bool:
        """Return True if an object of these names and labels is selected."""
        if self.names is not None and self.names.isdisjoint(names):
            return False
        if any(labels.get(name) != value for name, value in self.labels.items()):
            return False
        return all(requirement.holds(labels) for requirement in self.requirements)


def read_tool_selector(fields: Fields | None, beside: Collection[str] = ()) -> ToolSelector:
    """Read a selector of Tools.

    Without a selector, every Tool is selected. `beside` are further fields, read by the caller.
    """
    if fields is None:
        return ToolSelector()
    fields.refuse_unknown((*_TOOLS, *beside))
    names = None if fields.values.get("names") is None else frozenset(fields.strings("names"))
    selector = fields.child("selector")
    if selector is None:
        return ToolSelector(names)
    selector.refuse_unknown(_SELECTOR)
    requirements = tuple(map(_requirement, selector.children("matchExpressions")))
    return ToolSelector(names, selector.texts("matchLabels"), requirements)


def _requirement(fields: Fields) -> Requirement:
    fields.refuse_unknown(_EXPRESSION)
    key, operator, values = fields.text("key"), fields.text("operator"), fields.strings("values")
    if not key:
        fields.problem("key", "missing; write the name of a label")
    if operator not in {"In", "NotIn", "Exists", "DoesNotExist"}:
        fields.problem("operator", "must be In, NotIn, Exists or DoesNotExist")
        operator = "Exists"
    if bool(values) != (operator in {"In", "NotIn"}):
        wanted = "at least one value" if operator in {"In", "NotIn"} else "no values"
        fields.problem("values", f"operator {operator} takes {wanted}")
    return Requirement(key or "", _operator(operator), values)


def _operator(text: str) -> Operator:
    match text:
        case "In" | "NotIn" | "DoesNotExist":
            return text
        case _:
            return "Exists"
