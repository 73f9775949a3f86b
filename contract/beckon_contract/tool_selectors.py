"""Choosing among Tools by name and label, as an Agent does in several places."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from beckon_contract.fields import Fields
from beckon_contract.tools import Tool

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
