"""Write the page of Beckon's own resources from their definitions: `python docs/resources_page.py`."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).resolve().parents[1] / "deploy"
DEFINITIONS = ("201-crd-agent.yaml", "200-crd-tool.yaml")
_HEAD = """\
# Resources: every field

This page is made by `make docs` from the definitions in `deploy/`; `kubectl explain` says the same.
[Agents](agents.md) explains how to write one. A Tool is written by the operator alone, and
[why a tool is not ready](operate.md#a-tool-in-a-cluster-is-not-ready) reads its conditions.
EventTypes and Triggers are Knative's: [what Beckon reads of them](eventtypes.md).
"""


def page() -> str:
    """Return the page as Markdown."""
    return _HEAD + "".join(f"\n{text}" for name in DEFINITIONS for text in _definition(name))


def _definition(name: str) -> Iterator[str]:
    definition = yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))
    spec = definition["spec"]
    for version in spec["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        yield f"## {spec['names']['kind']} ({spec['group']}/{version['name']})\n\n{_text(schema)}\n"
        rows = [row for part in ("spec", "status") for row in _rows(part, schema["properties"].get(part, {}))]
        yield "| field | type | meaning |\n| --- | --- | --- |\n" + "".join(rows)


def _rows(path: str, schema: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each field of an object, and for those inside it."""
    required = set(schema.get("required", ()))
    for name, field in schema.get("properties", {}).items():
        where = f"{path}.{name}"
        needed = ", required" if name in required else ""
        yield f"| `{where}` | {_type(field)}{needed} | {_meaning(field)} |\n"
        inner = field.get("items", field)
        yield from _rows(f"{where}[]" if inner is not field else where, inner)


def _type(field: dict[str, Any]) -> str:
    if field.get("x-kubernetes-preserve-unknown-fields") or "type" not in field:
        return "any"
    if field["type"] == "array":
        return f"list of {_type(field['items'])}"
    values = field.get("additionalProperties")
    return f"map of {_type(values)}" if isinstance(values, dict) else str(field["type"])


def _meaning(field: dict[str, Any]) -> str:
    """Return the description with the bounds, which `kubectl` enforces."""
    sentences = [_text(field)] if field.get("description") else []
    if "enum" in field:
        sentences.append("One of " + ", ".join(f"`{value}`" for value in field["enum"]) + ".")
    if "default" in field:
        sentences.append(f"Default: `{field['default']}`.")
    least, most = field.get("minimum"), field.get("maximum")
    if least is not None or most is not None:
        sentences.append(
            f"From {least if least is not None else '…'} to {most if most is not None else '…'}."
        )
    sentences += [f"{rule['message'][:1].upper()}{rule['message'][1:]}." for rule in _rules(field)]
    return " ".join(sentences)


def _rules(field: dict[str, Any]) -> list[dict[str, str]]:
    rules: list[dict[str, str]] = [
        rule for rule in field.get("x-kubernetes-validations", ()) if "message" in rule
    ]
    return rules


def _text(field: dict[str, Any]) -> str:
    return " ".join(str(field.get("description", "")).split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
