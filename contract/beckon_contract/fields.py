"""Reading a manifest field by field, finding all mistakes at once.

A `Fields` never raises: a value of the wrong type is noted with its path and what to write instead, and
reads as absent.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One mistake: the path of a field, and a message.

    The message says what is wrong and what to write instead.
    """

    path: str
    message: str

    def __str__(self) -> str:
        """Return the path and the message in one line."""
        return f"{self.path}: {self.message}"


class InvalidFields(ValueError):
    """An object with mistakes; `problems` holds all of them."""

    def __init__(self, problems: Iterable[FieldProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(str(problem) for problem in self.problems))


@dataclass(slots=True)
class ReportProblem:
    """The findings of one pass: problems and warnings.

    `problems` make the object invalid, `warnings` do not.
    """

    problems: list[FieldProblem] = field(default_factory=list)
    warnings: list[FieldProblem] = field(default_factory=list)


class Fields:
    """One mapping inside a manifest, with its path and the report of the whole pass."""

    def __init__(self, values: Mapping[str, object], path: str, report: ReportProblem) -> None:
        self.values = values
        self.path = path
        self.report = report

    def at(self, name: str) -> str:
        """Return the path of a field as Kubernetes writes it, or of the mapping itself for ""."""
        return ".".join(part for part in (self.path, name) if part)

    def problem(self, name: str, message: str) -> None:
        """Note a mistake in a field."""
        self.report.problems.append(FieldProblem(self.at(name), message))

    def warn(self, name: str, message: str) -> None:
        """Note a permitted but probably unintended value of a field."""
        self.report.warnings.append(FieldProblem(self.at(name), message))

    def text(self, name: str) -> str | None:
        """Return a string field, or `None` if absent."""
        value = self.values.get(name)
        if value is None or isinstance(value, str):
            return value
        self.problem(name, f"must be a string, not {describe(value)}{_quoted(value)}")
        return None

    def integer(self, name: str) -> int | None:
        """Return an integer field, or `None` if absent."""
        value = self.values.get(name)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        self.problem(name, f"must be an integer, not {describe(value)}; write it without quotes")
        return None

    def positive(self, name: str) -> int | None:
        """Return an integer field of at least 1, or `None`."""
        value = self.integer(name)
        if value is not None and value < 1:
            self.problem(name, "must be at least 1")
        return value

    def boolean(self, name: str) -> bool | None:
        """Return a boolean field, or `None` if absent."""
        value = self.values.get(name)
        if value is None or isinstance(value, bool):
            return value
        self.problem(name, f"must be true or false, not {describe(value)}; write it without quotes")
        return None

    def strings(self, name: str) -> tuple[str, ...]:
        """Return a field with a list of strings, empty if absent."""
        value = self.values.get(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.problem(name, "must be a list of strings")
            return ()
        return tuple(value)

    def child(self, name: str) -> "Fields | None":
        """Return a mapping field, or `None` if absent."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, Mapping):
            return Fields(value, self.at(name), self.report)
        self.problem(name, f"must be a mapping, not {describe(value)}")
        return None

    def children(self, name: str) -> "list[Fields]":
        """Return a field with a list of mappings, empty if absent."""
        value = self.values.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            self.problem(name, f"must be a list, not {describe(value)}; put '- ' before each element")
            return []
        children = []
        for index, item in enumerate(value):
            where = f"{name}[{index}]"
            if isinstance(item, Mapping):
                children.append(Fields(item, self.at(where), self.report))
            else:
                self.problem(where, f"must be a mapping, not {describe(item)}")
        return children

    def texts(self, name: str) -> dict[str, str]:
        """Return a field with a mapping of strings, empty if absent."""
        child = self.child(name)
        texts: dict[str, str] = {}
        for key, value in (child.values if child else {}).items():
            if isinstance(value, str):
                texts[str(key)] = value
            else:
                self.problem(f"{name}[{key}]", f"must be a string, not {describe(value)}{_quoted(value)}")
        return texts

    def unknown(self, known: Collection[str]) -> list[str]:
        """Return the names of unknown fields."""
        return [str(name) for name in self.values if name not in known]

    def refuse_unknown(self, known: Collection[str]) -> None:
        """Note every unknown field, as kubectl and Knative's webhook do."""
        for name in self.unknown(known):
            self.problem(name, f"unknown field; the fields here are {', '.join(known)}")


def describe(value: object) -> str:
    """Return the type of a value in YAML and JSON terms."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case Mapping():
            return "a mapping"
        case _:
            return f"a {type(value).__name__}"


def _quoted(value: object) -> str:
    """Return the advice to quote a scalar. YAML did not read it as a string."""
    return "" if isinstance(value, list | Mapping) else "; write it in quotes"
