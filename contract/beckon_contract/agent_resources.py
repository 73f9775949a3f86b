"""`Agent` resources: an agent that people write as a Kubernetes object, and which tools it has."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from beckon_contract.fields import Fields, InvalidFields, Report
from beckon_contract.resources import Resource
from beckon_contract.tool_resources import API_VERSION, GROUP
from beckon_contract.tools import Tool

KIND = "Agent"
PLURAL = "agents"
DEFAULT_KEY = "api-key"

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]

_SPEC = ("systemPrompt", "model", "tools", "limits")
_MODEL = ("baseURL", "name", "dialect", "apiKeySecret")
_SECRET = ("name", "key")
_TOOLS = ("names", "selector")
_SELECTOR = ("matchLabels", "matchExpressions")
_EXPRESSION = ("key", "operator", "values")
_LIMITS = ("steps", "seconds", "tokens", "parallelCalls", "callTimeoutSeconds", "resultCharacters")

# Both become part of requests to the API server: RFC 1123 subdomain, and a key as Secrets have them.
_SECRET_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
_SECRET_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")


class InvalidAgent(InvalidFields):
    """An Agent has mistakes; `problems` names their fields."""


@dataclass(frozen=True, slots=True)
class SecretKey:
    """One entry of a Secret in the Agent's namespace."""

    name: str
    key: str


@dataclass(frozen=True, slots=True)
class ModelReference:
    """Which model an agent speaks to; `None` everywhere means the agent service's own."""

    base_url: str | None = None
    name: str | None = None
    dialect: str | None = None
    api_key: SecretKey | None = None


@dataclass(frozen=True, slots=True)
class Requirement:
    """One line of a label selector's matchExpressions (Kubernetes' LabelSelector)."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether labels meet it; NotIn holds where the label is absent, as in Kubernetes."""
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
    """Which Tools of its namespace an agent is offered: those that meet every part that is set.

    `names` are names of EventTypes or of tools as the model sees them; `None` means any.
    """

    names: frozenset[str] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    requirements: tuple[Requirement, ...] = ()

    def selects(self, tool: Tool) -> bool:
        """Whether an agent with this selector has the tool."""
        return self.matches((tool.name, tool.event_type), tool.labels)

    def matches(self, names: Collection[str], labels: Mapping[str, str]) -> bool:
        """Whether what has these names and labels is selected."""
        if self.names is not None and self.names.isdisjoint(names):
            return False
        if any(labels.get(name) != value for name, value in self.labels.items()):
            return False
        return all(requirement.holds(labels) for requirement in self.requirements)


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """How far one run may go; what is `None` is as the agent service has it. Times are seconds."""

    steps: int | None = None
    seconds: float | None = None
    tokens: int | None = None
    parallel_calls: int | None = None
    call_timeout: float | None = None
    result_chars: int | None = None


@dataclass(frozen=True, slots=True)
class AgentResource:
    """One Agent as it was written."""

    namespace: str
    name: str
    uid: str
    generation: int
    system_prompt: str | None
    model: ModelReference
    tools: ToolSelector
    limits: AgentLimits


def is_agent(resource: Resource) -> bool:
    """Whether an object is an Agent of Beckon."""
    return resource.group == GROUP and resource.kind == KIND


def read_agent(resource: Resource) -> AgentResource:
    """Read an Agent; raise `InvalidAgent` with every mistake that the CRD's schema let pass."""
    report = Report()
    if resource.api_version != API_VERSION or resource.kind != KIND:
        Fields({}, "", report).problem("apiVersion", f"must be {API_VERSION} with kind {KIND}")
    spec = Fields(resource.spec, "spec", report)
    spec.refuse_unknown(_SPEC)
    agent = AgentResource(
        namespace=resource.namespace,
        name=resource.name,
        uid=resource.uid,
        generation=resource.generation,
        system_prompt=spec.text("systemPrompt"),
        model=_model(spec.child("model")),
        tools=_tools(spec.child("tools")),
        limits=_limits(spec.child("limits")),
    )
    if report.problems:
        raise InvalidAgent(report.problems)
    return agent


def _model(fields: Fields | None) -> ModelReference:
    if fields is None:
        return ModelReference()
    fields.refuse_unknown(_MODEL)
    reference = ModelReference(
        base_url=fields.text("baseURL"),
        name=fields.text("name"),
        dialect=fields.text("dialect"),
        api_key=_secret(fields.child("apiKeySecret")),
    )
    if reference.api_key is not None and reference.base_url is None:
        # Otherwise the key would go to a server that its owner has not named.
        fields.problem("apiKeySecret", "needs baseURL, since the key belongs to that server")
    return reference


def _secret(fields: Fields | None) -> SecretKey | None:
    if fields is None:
        return None
    fields.refuse_unknown(_SECRET)
    name, key = fields.text("name") or "", fields.text("key") or DEFAULT_KEY
    if not _SECRET_NAME.fullmatch(name):
        fields.problem("name", "write the name of a Secret: lower-case letters, digits, '-' and '.'")
    if not _SECRET_KEY.fullmatch(key):
        fields.problem("key", "write a key of that Secret: letters, digits, '-', '_' and '.'")
    return SecretKey(name, key)


def _tools(fields: Fields | None) -> ToolSelector:
    if fields is None:
        return ToolSelector()
    fields.refuse_unknown(_TOOLS)
    selector = fields.child("selector")
    if selector is None:
        return ToolSelector(_names(fields))
    selector.refuse_unknown(_SELECTOR)
    requirements = tuple(map(_requirement, selector.children("matchExpressions")))
    return ToolSelector(_names(fields), selector.texts("matchLabels"), requirements)


def _names(fields: Fields) -> frozenset[str] | None:
    return None if fields.values.get("names") is None else frozenset(_strings(fields, "names"))


def _requirement(fields: Fields) -> Requirement:
    fields.refuse_unknown(_EXPRESSION)
    key, operator, values = fields.text("key"), fields.text("operator"), _strings(fields, "values")
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


def _limits(fields: Fields | None) -> AgentLimits:
    if fields is None:
        return AgentLimits()
    fields.refuse_unknown(_LIMITS)
    return AgentLimits(
        steps=_positive(fields, "steps"),
        seconds=_positive(fields, "seconds"),
        tokens=_positive(fields, "tokens"),
        parallel_calls=_positive(fields, "parallelCalls"),
        call_timeout=_positive(fields, "callTimeoutSeconds"),
        result_chars=_positive(fields, "resultCharacters"),
    )


def _positive(fields: Fields, name: str) -> int | None:
    value = fields.integer(name)
    if value is not None and value < 1:
        fields.problem(name, "must be at least 1")
    return value


def _strings(fields: Fields, name: str) -> tuple[str, ...]:
    value: Any = fields.values.get(name)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        fields.problem(name, "must be a list of strings")
        return ()
    return tuple(value)
