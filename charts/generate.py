"""Make the schema and the tables of a chart's values: `python charts/generate.py [--check] [CHART]`.

Both are made from values.yaml. The comment above a value is its description. A line `@schema {…}`
in it is JSON Schema that is added to what the default implies: its type, and for a map with keys,
that it has no others. The tables go into README.md between two marks. With `--check` nothing is
written, and the status is 1 where something is not up to date. Without a folder it is the chart
beside this file.
"""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).resolve().parent / "beckon"
BEGIN = "<!-- Made from values.yaml by `make docs`. -->\n"
END = "<!-- The end of what is made. -->\n"
_SCHEMA = "@schema "
_TYPES = {bool: "boolean", int: "integer", str: "string", list: "array", dict: "object"}
_STRINGS = {"type": "object", "additionalProperties": {"type": ["string", "integer"]}}
_PLACE: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "nodeSelector": {"type": "object", "additionalProperties": {"type": "string"}},
        "tolerations": {"type": "array", "items": {"type": "object"}},
        "affinity": {"type": "object"},
        "priorityClassName": {"type": "string"},
    },
}
_COMPONENTS = (
    "operator",
    "webhook",
    "shim",
    "agent",
    "adapter",
    "demoModel",
    "brokerIngress",
    "brokerDispatcher",
    "nats",
)
DEFINITIONS: dict[str, Any] = {
    "broker": {
        "type": "object",
        "required": ["namespace", "name"],
        "additionalProperties": False,
        "properties": {
            "namespace": {"type": "string", "minLength": 1},
            "name": {"type": "string", "minLength": 1},
            "create": {"type": "boolean"},
            "class": {"type": "string"},
            "config": {"type": "object"},
            "deliveryTimeout": {"type": "string", "pattern": "^(P[0-9A-Z.]+)?$"},
        },
    },
    "allowedHost": {
        "type": "object",
        "required": ["host"],
        "additionalProperties": False,
        "properties": {
            "host": {"type": "string", "minLength": 1},
            "private": {"type": "boolean"},
        },
    },
    "credential": {
        "type": "object",
        "required": ["name", "hosts", "secret", "key"],
        "additionalProperties": False,
        "properties": {
            "name": {"type": "string", "pattern": "^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$"},
            "hosts": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
            "type": {"enum": ["bearer", "basic", "header", "query", "oauth"]},
            "as": {"type": "string"},
            "issuer": {"type": "string", "pattern": "^https?://.+"},
            "secret": {"type": "string", "minLength": 1},
            "key": {"type": "string", "minLength": 1},
        },
    },
    "resources": {
        "type": "object",
        "additionalProperties": False,
        "properties": {"requests": _STRINGS, "limits": _STRINGS},
    },
    "scheduling": {
        "type": "object",
        "additionalProperties": False,
        "properties": dict.fromkeys(_COMPONENTS, _PLACE),
    },
}


class BadValues(ValueError):
    """The file of values is not as it should be; the message names the line and the cure."""


@dataclass(frozen=True, slots=True)
class Value:
    """One value: its path, what its comment says, its default, and the values inside it."""

    path: tuple[str, ...]
    description: str
    schema: dict[str, Any]
    default: Any
    children: tuple["Value", ...]

    @property
    def name(self) -> str:
        """The path as `--set` takes it."""
        return ".".join(self.path)


def read_values(text: str) -> tuple[Value, ...]:
    """Return the values of a file with their comments; raise `BadValues`."""
    root = yaml.compose(text, yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode):
        raise BadValues("values.yaml holds no map of values")
    return _children(root, (), yaml.safe_load(text), text.splitlines())


def _children(
    node: yaml.MappingNode, path: tuple[str, ...], default: Any, lines: Sequence[str]
) -> tuple[Value, ...]:
    return tuple(
        _value(key, inner, (*path, str(key.value)), default[key.value], lines) for key, inner in node.value
    )


def _value(
    key: yaml.Node, node: yaml.Node, path: tuple[str, ...], default: Any, lines: Sequence[str]
) -> Value:
    line = int(key.start_mark.line)
    text, schema = _comment(lines, line)
    if not text:
        raise BadValues(f"line {line + 1}: {'.'.join(path)} has no comment; write above it what it means")
    children: tuple[Value, ...] = ()
    if isinstance(node, yaml.MappingNode) and "$ref" not in schema:
        children = _children(node, path, default, lines)
    return Value(path, text, schema, default, children)


def _comment(lines: Sequence[str], line: int) -> tuple[str, dict[str, Any]]:
    """Return the text and the schema in the comment right above a line."""
    text: list[str] = []
    schema: dict[str, Any] = {}
    first = line
    while first and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    for number in range(first, line):
        said = lines[number].lstrip(" #")
        if not said.startswith(_SCHEMA):
            text.append(said)
            continue
        try:
            schema |= json.loads(said.removeprefix(_SCHEMA))
        except ValueError as error:
            raise BadValues(f"line {number + 1}: what follows @schema is no JSON object: {error}") from None
    return " ".join(text), schema


def schema(values: Sequence[Value]) -> dict[str, Any]:
    """Return the JSON Schema of the values."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **_object(values),
        "$defs": DEFINITIONS,
    }


def _object(values: Sequence[Value]) -> dict[str, Any]:
    # Helm itself adds `global` to the values of every chart that is part of another.
    properties = {value.path[-1]: _schema(value) for value in values}
    if values and len(values[0].path) == 1:
        properties["global"] = {"type": "object"}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _schema(value: Value) -> dict[str, Any]:
    described = {"description": value.description}
    if value.children:
        return {**described, **_object(value.children), **value.schema}
    if "$ref" in value.schema:
        return {"allOf": [value.schema], **described}
    return {**described, "type": _TYPES[type(value.default)], "default": value.default, **value.schema}


def page(values: Sequence[Value]) -> str:
    """Return the values as Markdown: those of the first level, then a table a section."""
    parts = [_table([value for value in values if not value.children])]
    for section in values:
        if section.children:
            rows = list(_rows(section.children))
            parts.append(f"### {section.name}\n\n{section.description}\n\n{_table(rows)}")
    return "\n".join(parts)


def _rows(values: Sequence[Value]) -> Iterator[Value]:
    for value in values:
        yield value
        yield from _rows(value.children)


def _table(values: Sequence[Value]) -> str:
    lines = ["| value | default | what it means |", "| --- | --- | --- |"]
    for value in values:
        default = "" if value.children else f"`{_cell(json.dumps(value.default))}`"
        lines += [f"| `{value.name}` | {default} | {_cell(value.description)} |"]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def made(chart: Path) -> dict[Path, str]:
    """Return what the files should hold that are made from the values of a chart."""
    values = read_values((chart / "values.yaml").read_text(encoding="utf-8"))
    readme = (chart / "README.md").read_text(encoding="utf-8")
    pattern = re.compile(re.escape(BEGIN) + r".*" + re.escape(END), re.DOTALL)
    if len(pattern.findall(readme)) != 1:
        raise BadValues(f"README.md must hold the two marks {BEGIN.strip()} and {END.strip()} once")
    block = f"{BEGIN}\n{page(values)}\n{END}"
    return {
        chart / "values.schema.json": json.dumps(schema(values), indent=2) + "\n",
        chart / "README.md": pattern.sub(lambda _: block, readme),
    }


def main(arguments: Sequence[str]) -> int:
    """Write what is made, or with `--check` print what is not up to date."""
    chart = next((Path(word) for word in arguments if not word.startswith("-")), CHART)
    stale = 0
    try:
        for path, text in made(chart).items():
            if path.exists() and path.read_text(encoding="utf-8") == text:
                continue
            stale += 1
            if "--check" in arguments:
                sys.stderr.write(f"{path.name} does not say what values.yaml says; run: make docs\n")
            else:
                path.write_text(text, encoding="utf-8")
    except BadValues as error:
        sys.stderr.write(f"charts/generate.py: {error}\n")
        return 2
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
