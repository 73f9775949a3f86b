"""Trigger filters: `filter.attributes` and every dialect of `filters`, as Knative's brokers apply them.

A filter is compiled once into a closure and then called for every event. Written against
knative/eventing pkg/apis/eventing/v1/trigger_validation.go and pkg/eventfilter, whose
multi-tenant broker sets the rules where brokers differ.

A filter element that says nothing (`{}`, `not: {}`, an empty value) is skipped, as that broker
does, so a Trigger with no other element passes every event; each such element gives a warning.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from beckon_contract.cloudevents.events import AttributeValue
from beckon_contract.cloudevents.extensions import to_text
from beckon_contract.fields import Fields, InvalidFields, ReportProblem
from beckon_contract.knative.cesql import CesqlSyntaxError, parse

Attributes = Mapping[str, AttributeValue]
EventFilter = Callable[[Attributes], bool]
_Lookup = Callable[[Attributes], AttributeValue | None]
_Test = Callable[[str, str], bool]

MAX_DEPTH = 32
MAX_ELEMENTS = 1024

_NAME = re.compile(r"[a-z][a-z0-9]*\Z", re.ASCII)
# Every dialect with the value that says nothing.
_EMPTY: Mapping[str, object] = {
    "exact": {},
    "prefix": {},
    "suffix": {},
    "all": [],
    "any": [],
    "not": None,
    "cesql": "",
}
_DIALECTS = tuple(_EMPTY)
_OWN_RULES = frozenset({"time", "schemaurl", "datamediatype"})
_ZERO_TIME = "0001-01-01T00:00:00Z"
_TESTS: Mapping[str, _Test] = {
    "exact": str.__eq__,
    "prefix": str.startswith,
    "suffix": str.endswith,
}


class FilterError(InvalidFields):
    """A Trigger's filters have mistakes; `problems` names their fields."""


def compile_filter(trigger_spec: Mapping[str, object]) -> EventFilter:
    """Compile a Trigger's `filter` and `filters` into one filter.

    The filter itself never raises. Compiling raises `FilterError` with every mistake where Knative's
    webhook refuses the Trigger.
    """
    report = ReportProblem()
    event_filter = read_filter(Fields(trigger_spec, "spec", report))
    if report.problems:
        raise FilterError(report.problems)
    return event_filter


def read_filter(spec: Fields) -> EventFilter:
    """Compile the filters of a Trigger's spec and note mistakes in the report of the fields."""
    legacy = _attributes(spec)
    elements = spec.children("filters")
    if not elements:
        return legacy or passes_all
    if legacy is not None:
        spec.warn("filter", "has no effect beside filters; move its attributes to a filters element")
    compiler = _Compiler()
    return _all(compiler.compile_each(elements, depth=1)) or passes_all


def passes_all(_: Attributes) -> bool:
    """Pass every event, as a Trigger without filters does."""
    return True


def required_attributes(trigger_spec: Mapping[str, object]) -> dict[str, str]:
    """Return attributes without which no event passes, by name: the exact text, or "" for any value.

    It is a necessary condition, for an index of Triggers; the filter itself decides. Conditions in `any`,
    `not` and CESQL do not count, nor attributes with rules of their own for comparison (times, media types).
    """
    spec = Fields(trigger_spec, "spec", ReportProblem())
    elements = spec.children("filters")
    if elements:
        return _required_by(elements, depth=1)
    legacy = spec.child("filter")
    pairs = legacy.texts("attributes") if legacy else {}
    return {name: want for name, want in pairs.items() if name not in _OWN_RULES}


def _required_by(elements: list[Fields], depth: int) -> dict[str, str]:
    """Return what the elements of a list require, all of which must pass."""
    required: dict[str, str] = {}
    for element in elements if depth <= MAX_DEPTH else ():
        exact = element.texts("exact")
        if "" not in exact.values():
            required |= {name: want for name, want in exact.items() if name not in _OWN_RULES}
        if element.values.get("all"):
            required |= _required_by(element.children("all"), depth + 1)
    return required


def _attributes(spec: Fields) -> EventFilter | None:
    """Compile `filter.attributes`; an empty value asks for presence, other types never equal a string."""
    fields = spec.child("filter")
    if fields is None:
        return None
    fields.refuse_unknown(("attributes",))
    return _all([_equals(name, want) for name, want in _pairs(fields, "attributes").items()])


def _equals(name: str, want: str) -> EventFilter:
    lookup = _lookup(name)
    if want == "":
        return lambda attributes: lookup(attributes) not in {None, ""}
    return lambda attributes: lookup(attributes) == want


@dataclass(slots=True)
class _Compiler:
    """Compiles filter elements; counts them, since YAML aliases can multiply without end."""

    count: int = 0
    refused: bool = False

    def compile_each(self, elements: list[Fields], depth: int) -> list[EventFilter]:
        """Compile a list of elements, skipping empty ones."""
        compiled = (self.compile(element, depth) for element in elements)
        return [event_filter for event_filter in compiled if event_filter is not None]

    def compile(self, fields: Fields, depth: int) -> EventFilter | None:
        """Compile one element; return `None` if it is empty."""
        self.count += 1
        if depth > MAX_DEPTH or self.count > MAX_ELEMENTS:
            self._refuse(fields)
            return None
        fields.refuse_unknown(_DIALECTS)
        present = [name for name, empty in _EMPTY.items() if fields.values.get(name) not in (None, empty)]
        if len(present) > 1:
            fields.problem(
                "", f"has {' and '.join(present)}; one element has one dialect, so write one for each"
            )
        compiled = [self._dialect(fields, name, depth) for name in present]
        if not present:
            fields.warn("", "says nothing, so Knative skips it and only the other elements decide")
        return compiled[0] if compiled else None

    def _dialect(self, fields: Fields, name: str, depth: int) -> EventFilter | None:
        if name == "cesql":
            return _cesql(fields)
        if name in _TESTS:
            return _compares(fields, name)
        if name == "not":
            child = fields.child("not")
            inner = self.compile(child, depth + 1) if child else None
            return _not(inner) if inner else None
        inners = self.compile_each(fields.children(name), depth + 1)
        return _all(inners) if name == "all" else _any(inners)

    def _refuse(self, fields: Fields) -> None:
        """Note once too many or too deeply nested filters."""
        if not self.refused:
            fields.problem(
                "", f"more than {MAX_ELEMENTS} elements or {MAX_DEPTH} levels; write one cesql instead"
            )
        self.refused = True


def _pairs(fields: Fields, name: str) -> dict[str, str]:
    """Return the attributes of a dialect with their wanted values.

    Names no attribute can have are noted as mistakes.
    """
    pairs = fields.texts(name)
    for attribute in pairs:
        if not _NAME.match(attribute):
            fields.problem(
                f"{name}[{attribute}]",
                "no attribute has this name: it starts with a letter and has only a-z and 0-9",
            )
    return pairs


def _compares(fields: Fields, dialect: str) -> EventFilter | None:
    """Compile exact, prefix or suffix: every attribute as text; one empty value and all is skipped."""
    pairs = _pairs(fields, dialect)
    for name, want in pairs.items():
        if want == "":
            fields.warn(
                f"{dialect}[{name}]",
                "is empty, so Knative skips this element; to ask for presence write filter.attributes"
                f" with an empty value, or cesql: EXISTS {name}",
            )
    if "" in pairs.values():
        return None
    return _all([_compare(_TESTS[dialect], name, want) for name, want in pairs.items()])


def _compare(test: _Test, name: str, want: str) -> EventFilter:
    lookup = _lookup(name)

    def compares(attributes: Attributes) -> bool:
        value = lookup(attributes)
        return value is not None and test(to_text(value), want)

    return compares


def _cesql(fields: Fields) -> EventFilter | None:
    """Compile a CESQL expression. An error or a result that is no boolean is no match (CESQL 1.0, 1.2)."""
    source = fields.text("cesql")
    if not source:
        return None
    try:
        expression = parse(source)
    except CesqlSyntaxError as error:
        fields.problem("cesql", str(error))
        return None
    for warning in expression.warnings:
        fields.warn("cesql", warning)
    evaluate = expression.evaluator
    return lambda attributes: evaluate(attributes) is True


def _all(filters: list[EventFilter]) -> EventFilter | None:
    if len(filters) < 2:
        return filters[0] if filters else None
    return lambda attributes: all(event_filter(attributes) for event_filter in filters)


def _any(filters: list[EventFilter]) -> EventFilter | None:
    if len(filters) < 2:
        return filters[0] if filters else None
    return lambda attributes: any(event_filter(attributes) for event_filter in filters)


def _not(inner: EventFilter) -> EventFilter:
    return lambda attributes: not inner(attributes)


def _lookup(name: str) -> _Lookup:
    """Return how an attribute is found; the names of older specifications count, as in Knative."""
    match name:
        case "time":
            return lambda attributes: _time(attributes.get("time"))
        case "schemaurl":
            return lambda attributes: attributes.get("dataschema")
        case "datamediatype":
            return lambda attributes: _media_type(attributes.get("datacontenttype"))
        case _:
            return lambda attributes: attributes.get(name)


def _time(value: AttributeValue | None) -> str:
    """Return a time as Go prints it.

    It has no trailing zeros, UTC as Z, and the year 1 if there is no time.
    """
    if not value:
        return _ZERO_TIME
    text = to_text(value).upper()
    seconds, rest = text[:19], text[19:]
    zone = "Z" if rest.endswith("Z") else rest[-6:]
    fraction = rest[: -len(zone)][:10].rstrip("0").rstrip(".")
    return f"{seconds}{fraction}{'Z' if zone[1:] == '00:00' else zone}"


def _media_type(value: AttributeValue | None) -> str | None:
    return None if value is None else to_text(value).split(";")[0].strip().lower()
