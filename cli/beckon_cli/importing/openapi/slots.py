"""The arguments of a tool, and their places in the request."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Flat:
    """A request as one flat object, while it is being put together.

    `path` has the value of each of the path's placeholders, `url_path` is the path with them filled.
    `properties`, `required` and `alternatives` (an `anyOf` beside them) describe the arguments; the other
    fields are those of the adapter's rule, with `{argument}` where an argument goes. `notes` say what was
    left out or made simpler.
    """

    url_path: str = ""
    properties: dict[str, Any] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    alternatives: list[Any] = field(default_factory=list)
    path: dict[str, str] = field(default_factory=dict)
    query: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    cookies: dict[str, str] = field(default_factory=dict)
    body: Any = None
    body_type: str = ""
    encoding: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def take_argument(self, wanted: str, place: str, schema: Any, *, required: bool) -> str:
        """Add an argument and return its name.

        It is the wanted name; if that is taken, its place is appended, and a number if needed.
        """
        name = wanted if wanted not in self.properties else f"{wanted}_{place}"
        number = 1
        while name in self.properties:
            number += 1
            name = f"{wanted}_{place}_{number}"
        self.properties[name] = schema
        if required:
            self.required.append(name)
        return name


def constant_of(schema: Any) -> Any:
    """Return the only value allowed by a schema.

    Returns `None` if it allows several, and if the only one is null.
    """
    if not isinstance(schema, Mapping):
        return None
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    return values[0] if isinstance(values, list) and len(values) == 1 else None


def to_literal(value: Any) -> Any:
    """Return a value as a rule writes it, with the braces of its texts doubled."""
    if isinstance(value, str):
        return value.replace("{", "{{").replace("}", "}}")
    if isinstance(value, Mapping):
        return {name: to_literal(inner) for name, inner in value.items()}
    return [to_literal(inner) for inner in value] if isinstance(value, list) else value
