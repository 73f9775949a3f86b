"""One error or likely mistake in a manifest."""

from dataclasses import dataclass
from typing import Literal

from beckon_contract.fields import FieldProblem
from beckon_contract.kubernetes_objects import Resource

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """An error or a warning about an object.

    An `error` keeps the object from its work, a `warning` is a likely surprise later.

    `field` is the path of the field to change, `message` says what is wrong and what to write.
    A document that cannot be read has no kind and no name.
    """

    origin: str
    namespace: str
    kind: str
    name: str
    severity: Severity
    field: str
    message: str


def warning(resource: Resource, field: str, message: str) -> Finding:
    """Return a warning about a field of an object."""
    return _finding(resource, "warning", field, message)


def error(resource: Resource, field: str, message: str) -> Finding:
    """Return an error in a field of an object."""
    return _finding(resource, "error", field, message)


def warnings(resource: Resource, problems: tuple[FieldProblem, ...]) -> list[Finding]:
    """Return a parser's warnings about an object as findings."""
    return [warning(resource, problem.path, problem.message) for problem in problems]


def errors(resource: Resource, problems: tuple[FieldProblem, ...]) -> list[Finding]:
    """Return a parser's errors in an object as findings."""
    return [error(resource, problem.path, problem.message) for problem in problems]


def _finding(resource: Resource, severity: Severity, field: str, message: str) -> Finding:
    return Finding(
        resource.origin, resource.namespace, resource.kind, resource.name, severity, field, message
    )
