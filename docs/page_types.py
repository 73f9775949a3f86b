"""Write the page's types of the API's answers: `python docs/page_types.py`."""

import asyncio
import json
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from api_page import description
from pydantic import TypeAdapter

from beckon_agent.api.replays import LiveCallDocument, ReplayDocument
from beckon_agent.api.tools import ProgressDocument

_HEAD = """\
// The answers of the API, as the page reads them. `make docs` makes this file from the OpenAPI description.
"""
_REQUESTS = {
    "get": (
        "/catalogue",
        "/catalogue/{namespace}/{event_type}",
        "/inputs",
        "/runs",
        "/runs/{run_id}",
        "/runs/{run_id}/events",
        "/tools",
        "/v1/conversations",
        "/v1/conversations/{conversation_id}",
        "/v1/conversations/{conversation_id}/items",
        "/v1/models",
        "/v1/responses/{response_id}",
        "/v1/responses/{response_id}/input_items",
    ),
    "post": (
        "/approvals/{approval_id}",
        "/inputs/{input_id}",
        "/tools/{name}",
        "/v1/conversations",
        "/v1/conversations/{conversation_id}/items",
        "/v1/responses",
        "/v1/responses/{response_id}/cancel",
    ),
    "delete": ("/v1/conversations/{conversation_id}",),
}
"""The requests of the page, by method."""

_OTHERS = ("ErrorDocument", "ProblemDocument", "ReplayRequest")
_STREAMED = (LiveCallDocument, ProgressDocument, ReplayDocument)
"""The data of events in streams, which OpenAPI does not describe."""

_REFERENCES = "#/components/schemas/"
_SIMPLE = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"}


def write_types(document: Mapping[str, Any]) -> str:
    """Return the declarations of the answers, and of all types in them."""
    schemas = {**document["components"]["schemas"], **_streamed_schemas()}
    answers = {method: _find_answers(document, method) for method in _REQUESTS}
    names = [name for found in answers.values() for name in found.values()]
    wanted, found = [*names, *_OTHERS, *(kind.__name__ for kind in _STREAMED)], dict[str, str]()
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = "".join(_declare_type(name, schemas[name]))
            wanted += re.findall(rf'"\$ref": "{_REFERENCES}(\w+)"', json.dumps(schemas[name]))
    types = (found[name] for name in sorted(found, key=_type_name))
    choices = ("".join(_declare_answer(method, answers[method])) for method in _REQUESTS)
    return _HEAD + "".join(f"\n{declaration}" for declaration in (*types, *choices))


def _streamed_schemas() -> dict[str, Any]:
    schemas: dict[str, Any] = {}
    for kind in _STREAMED:
        schema = TypeAdapter(kind).json_schema(ref_template=f"{_REFERENCES}{{model}}", mode="serialization")
        schemas |= schema.pop("$defs", {})
        schemas[kind.__name__] = schema
    return schemas


def _find_answers(document: Mapping[str, Any], method: str) -> dict[str, str]:
    """Return the schema of each answer, by path."""
    answers = {}
    for path in _REQUESTS[method]:
        schema = document["paths"][path][method]["responses"]["200"]["content"]["application/json"]["schema"]
        answers[path] = schema["$ref"].removeprefix(_REFERENCES)
    return answers


def _declare_answer(method: str, answers: Mapping[str, str]) -> Iterator[str]:
    """Write the type of a method's answer, which follows from the path; the longest path is tried first."""
    yield f"/** The answer to a request with {method.upper()}, by its path. */\n"
    yield f"export type {method.title()}Answer<Path extends string> =\n"
    for path in sorted(answers, key=lambda path: (-path.count("/"), path)):
        pattern = re.sub(r"\{\w+\}", "${string}", path.removeprefix("/"))
        yield f"    Path extends `{pattern}` ? {_type_name(answers[path])} :\n"
    yield "    never;\n"


def _type_name(name: str) -> str:
    """Return the name of a type: that of a generic page begins with its item."""
    return re.sub(r"^ListPage_(\w+)_$", r"\1Page", name)


def _declare_type(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    text = " ".join(str(schema.get("description", "")).split())
    yield f"/** {text} */\n" if text else ""
    yield f"export type {_type_name(name)} = {{\n"
    required = schema.get("required", ())
    for member, kind in schema["properties"].items():
        key = member if member.isidentifier() else json.dumps(member)
        yield f"    {key}{'' if member in required else '?'}: {_to_type(kind)};\n"
    yield "};\n"


def _to_type(schema: Mapping[str, Any]) -> str:
    match schema:
        case {"$ref": str(reference)}:
            return _type_name(reference.removeprefix(_REFERENCES))
        case {"const": value}:
            return json.dumps(value)
        case {"enum": values}:
            return " | ".join(json.dumps(value) for value in values)
        case {"anyOf": choices} | {"oneOf": choices}:
            return " | ".join(dict.fromkeys(_to_type(choice) for choice in choices))
        case {"type": "array", **rest}:
            return f"Array<{_to_type(rest.get('items', {}))}>"
        case {"type": "object", **rest}:
            members = rest.get("additionalProperties", True)
            return f"{{ [name: string]: {_to_type(members) if isinstance(members, dict) else 'unknown'} }}"
        case {"type": str(simple)}:
            return _SIMPLE[simple]
        case _:
            return "unknown"


if __name__ == "__main__":
    sys.stdout.write(write_types(asyncio.run(description())))
