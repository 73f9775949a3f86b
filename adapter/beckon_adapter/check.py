"""Mistakes in the rules of a set of manifests, for `beckon check`."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from beckon_adapter.a2a import parse_a2a_rule
from beckon_adapter.declaration import has_rule, rule_of
from beckon_adapter.rule import HttpRule, parse_mcp_rule, parse_rule
from beckon_adapter.templates import parse_target
from beckon_contract.catalogue.annotations import A2A, HTTP, MCP, BrokenPlace, find_parameters
from beckon_contract.catalogue.diagnostics import Finding, errors, warning
from beckon_contract.fields import FieldProblem, InvalidFields
from beckon_contract.knative.eventtypes import EventType, InvalidEventType, is_event_type, parse_event_type
from beckon_contract.kubernetes_objects import Resource, Unreadable
from beckon_contract.schema.parameters import SchemaError, normalise

_WITHOUT_ARGUMENTS: Mapping[str, Callable[[str], object]] = {MCP: parse_mcp_rule, A2A: parse_a2a_rule}


def check_rules(resources: Iterable[Resource | Unreadable]) -> Iterator[Finding]:
    """Yield the errors and warnings of every rule.

    A warning is for something valid that is hardly intended. No manifest makes this raise. Errors of the
    EventTypes themselves are reported by `beckon_contract`.
    """
    for resource in resources:
        if isinstance(resource, Resource) and is_event_type(resource) and has_rule(resource):
            yield from _check_resource(resource)


def _check_resource(resource: Resource) -> Iterator[Finding]:
    try:
        event_type = parse_event_type(resource)
        parameters = normalise(find_parameters(event_type).document)
    except (InvalidEventType, BrokenPlace, SchemaError):
        return
    try:
        annotation = rule_of(event_type)
        if parse := _WITHOUT_ARGUMENTS.get(annotation):
            parse(event_type.annotations[annotation])
            return
        rule = parse_rule(event_type.annotations[HTTP], parameters)
    except InvalidFields as error:
        yield from errors(resource, error.problems)
        return
    for problem in _find_likely_mistakes(rule, event_type, parameters):
        yield warning(resource, problem.path, problem.message)


def _find_likely_mistakes(
    rule: HttpRule, event_type: EventType, parameters: dict[str, object]
) -> Iterator[FieldProblem]:
    place = f"metadata.annotations[{HTTP}]"
    listed = parameters.get("required")
    required = listed if isinstance(listed, list) else []
    for segment in parse_target(rule.url).path:
        for name in segment.names:
            if name not in required:
                message = f"needs {{{name}}}, which is not required: a call without it is refused"
                yield FieldProblem(f"{place}.url", message)
    known = parameters.get("properties")
    unused = sorted((known.keys() if isinstance(known, dict) else set()) - rule.arguments)
    if unused:
        message = f"uses no argument {', '.join(unused)}: whatever a model writes there goes nowhere"
        yield FieldProblem(place, message)
