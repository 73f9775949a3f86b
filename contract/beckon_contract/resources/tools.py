"""Tools: their declaration to a model, selectors of Agents for them, and `Tool` resources.

The operator writes a `Tool` resource for an EventType, and agents read it. It is one object without a status
subresource: declaration and conditions are written together, so an agent never sees the conditions of another
declaration.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from beckon_contract.fields import Fields
from beckon_contract.knative.delivery import Reference
from beckon_contract.kubernetes_objects import READY, Condition, Resource, condition
from beckon_contract.schema.lowering import Profile, lower, lower_strict

MAX_DESCRIPTION = 1024  # characters; OpenAI refuses the whole request above
Dispatch = Literal["broker", "direct"]

ReplyKind = Literal["event", "any"]
"""What counts as the reply of a tool: an event alone, or also JSON, a text or an answer without a body."""

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
    `returns` a JSON Schema 2020-12 of results, `None` without one;
    `timeout` in seconds, `None` for the agent's default; `source` the CloudEvents source that
    the call must have, `None` for the agent's own; `routes` the names of the Triggers of
    `broker` that pass the call, empty only with `dispatch` direct, which goes to `reference`,
    whose URL is `address`; `reply_attribute` the extension by which a reply names its call,
    empty for the usual ones.
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
    reply: ReplyKind = "event"
    reply_attribute: str = ""
    text_calls: TextCallRule = "Allow"
    broker: str = "default"
    routes: tuple[str, ...] = ()
    reference: Reference | None = None
    address: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    origin: str = ""
    returns: Mapping[str, Any] | None = None


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
    """An EventType without a tool, by choice or by rule. This is no mistake."""

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


GROUP = "beckon.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "Tool"
PLURAL = "tools"

# In the order in which they are judged; Ready is made of the first three.
CONDITIONS = ("Declared", "Routed", "Answerable", "Available", "RepliesArrive", "DeadLettered", READY)
# Written by the agents, who know how calls end, into the list of the operator, who leaves it there.
ANSWERING = "Answering"
_DECIDING = frozenset(CONDITIONS[:3])
_WARNING = frozenset(("Available", "RepliesArrive", "DeadLettered"))


def tool_spec(tool: Tool) -> dict[str, Any]:
    """Return the spec of a Tool resource.

    Optional fields are left out if they are absent or at their default.
    """
    spec: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "parametersFrom": tool.parameters_from,
        "type": tool.type,
        "dispatch": tool.dispatch,
        "broker": tool.broker,
        "triggers": list(tool.routes),
    }
    optional: dict[str, Any] = {
        "source": tool.source,
        "timeoutSeconds": tool.timeout,
        "requiresApproval": tool.requires_approval,
        "idempotent": tool.idempotent,
        "readOnly": tool.read_only,
        "reply": tool.reply if tool.reply != "event" else "",
        "replyAttribute": tool.reply_attribute,
        "address": tool.address,
        "reference": _reference(tool.reference),
        "returns": tool.returns,
    }
    if tool.destructive is not None:  # where nothing is said, false is no guess to make
        spec["destructive"] = tool.destructive
    return spec | {name: value for name, value in optional.items() if value}


def read_tool(resource: Resource) -> Tool | Refusal:
    """Return the tool offered by a resource, or its refusal.

    The refusal is made of the Ready condition. Nothing in a resource makes this raise; one that no operator
    can have written is refused.
    """
    ready = condition(resource.status, READY)
    if ready is None or ready.status != "True":
        return _refusal(resource, ready)
    spec = resource.spec
    try:
        return Tool(
            name=_text(spec, "name"),
            namespace=resource.namespace,
            event_type=resource.name,
            type=_text(spec, "type"),
            source=_optional(spec, "source") or None,
            description=_optional(spec, "description"),
            parameters=_mapping(spec, "parameters"),
            parameters_from=_optional(spec, "parametersFrom"),
            timeout=_seconds(spec.get("timeoutSeconds")),
            requires_approval=spec.get("requiresApproval") is True,
            dispatch=_dispatch(spec.get("dispatch")),
            idempotent=spec.get("idempotent") is True,
            read_only=spec.get("readOnly") is True,
            destructive=_optional_flag(spec.get("destructive")),
            reply="any" if spec.get("reply") == "any" else "event",
            reply_attribute=_optional(spec, "replyAttribute"),
            broker=_optional(spec, "broker") or "default",
            routes=_texts(spec, "triggers"),
            reference=_read_reference(spec.get("reference"), resource.namespace),
            address=_optional(spec, "address"),
            labels=resource.labels,
            origin=resource.origin,
            returns=None if spec.get("returns") is None else _mapping(spec, "returns"),
        )
    except ValueError as error:
        message = f"{error}; the operator writes Tools, so change the EventType instead"
        return Refusal(resource.name, resource.namespace, "InvalidTool", "spec", message, resource.origin)


def ready_from(conditions: Iterable[Condition]) -> Condition:
    """Return the Ready condition, made of the first three conditions.

    The first of them that is not True decides. Where all are, Ready is True, and a condition that
    only warns gives it its reason: `kubectl get tools` shows no other.
    """
    known = list(conditions)
    for one in known:
        if one.type in _DECIDING and one.status != "True":
            return Condition(READY, one.status, one.reason, one.message)
    for one in known:
        if one.type in _WARNING and one.status == "False":
            return Condition(READY, "True", one.reason, one.message)
    return Condition(READY, "True", "Ready")


def _refusal(resource: Resource, ready: Condition | None) -> Refusal:
    reason = ready.reason if ready and ready.reason else "NotJudged"
    message = ready.message if ready and ready.message else "the operator has not judged this Tool yet"
    return Refusal(resource.name, resource.namespace, reason, "", message, resource.origin)


def _reference(reference: Reference | None) -> dict[str, str] | None:
    if reference is None:
        return None
    return {
        "apiVersion": reference.api_version,
        "kind": reference.kind,
        "namespace": reference.namespace,
        "name": reference.name,
    }


def _read_reference(value: object, namespace: str) -> Reference | None:
    if not isinstance(value, Mapping):
        return None
    return Reference(
        _text(value, "apiVersion"),
        _text(value, "kind"),
        _optional(value, "namespace") or namespace,
        _text(value, "name"),
    )


def _text(values: Mapping[str, Any], name: str, *, empty: bool = False) -> str:
    value = values.get(name)
    if not isinstance(value, str) or not (value or empty):
        raise ValueError(f"{name} is missing or no string")
    return value


def _optional(values: Mapping[str, Any], name: str) -> str:
    return "" if values.get(name) is None else _text(values, name, empty=True)


def _texts(values: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = values.get(name) or []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"{name} is no list of strings")
    return tuple(value)


def _mapping(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = values.get(name)
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} is missing or no mapping")
    return value


def _seconds(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise ValueError(f"timeoutSeconds is {value!r}, not a number of seconds")
    return float(value)


def _dispatch(value: object) -> Dispatch:
    if value == "direct":
        return "direct"
    if value == "broker":
        return "broker"
    raise ValueError(f"dispatch is {value!r}, neither broker nor direct")


def _optional_flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None
