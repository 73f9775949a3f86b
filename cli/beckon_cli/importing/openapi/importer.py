"""Operations as tools with the adapter's annotation `beckon.dev/http`.

An operation without a tool has a line with the reason.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from beckon_adapter.rule import InvalidRule, parse_rule
from beckon_cli.importing.candidates import Credential, Skipped
from beckon_cli.importing.documents import BadDescription
from beckon_cli.importing.openapi import openapi3
from beckon_cli.importing.openapi.arguments import CannotImport, flatten_operation
from beckon_cli.importing.openapi.bodies import JSON, FlatRequest, to_literal
from beckon_cli.importing.openapi.naming import name_operations
from beckon_cli.importing.openapi.operations import Description, Operation, credential_for, to_slug
from beckon_cli.importing.openapi.schemas import simplify_schema
from beckon_cli.importing.openapi.words import describe_operation, says_nothing, split_words
from beckon_contract.catalogue.annotations import DESTRUCTIVE, HTTP, IDEMPOTENT, READ_ONLY
from beckon_contract.schema.keywords import Schema
from beckon_contract.schema.parameters import SchemaError
from beckon_contract.yamltext import write_yaml


def rule_for(operation: Operation, flat: FlatRequest, credential: Credential) -> dict[str, Any]:
    """Return the rule as plain data, without default values."""
    rule: dict[str, Any] = {
        "method": operation.method.upper(),
        "url": to_literal(operation.server) + flat.url_path,
    }
    headers = {**_accept_header(operation), **flat.headers}
    parts = {"query": flat.query, "headers": headers, "cookies": flat.cookies}
    rule |= {name: value for name, value in parts.items() if value}
    if flat.body is not None:
        rule["body"] = flat.body
        if flat.body_type != JSON:
            rule["body_type"] = flat.body_type
        if flat.encoding:
            rule["encoding"] = flat.encoding
    if credential.name:
        rule["credential"] = credential.name
    return rule


def _accept_header(operation: Operation) -> dict[str, str]:
    """Return the header to request JSON among several media types.

    It is empty if the operation has only one, or no JSON.
    """
    kinds = [kind.partition(";")[0].strip().lower() for kind in operation.answers]
    if len(set(kinds)) > 1 and JSON in kinds:
        return {"Accept": JSON}
    return {}


MAX_PARAMETERS = 20 * 1024  # bytes of JSON, some 5,000 tokens: more than one tool should cost a model
_DEPTHS = (12, 8, 6, 5, 4, 3, 2, 1)
_IDEMPOTENT = frozenset({"get", "head", "put", "delete"})
_READ_ONLY = frozenset({"get", "head"})
_UNUSABLE = {"options": "describes what a server can do", "trace": "sends a request back, for debugging"}


@dataclass(frozen=True, slots=True)
class OpenApiOptions:
    """The user's options for all operations.

    They are the prefix of the names, the credential, the parameters that stay arguments (`keep`), and the
    values of other parameters (`fixed`).
    """

    prefix: str = ""
    credential: str = ""
    keep: frozenset[str] = frozenset()
    fixed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Imported:
    """An operation as a tool, with its name and rule.

    `parameters` is the JSON Schema of its arguments, `rule` the adapter's rule.
    """

    operation: Operation
    name: str
    type: str
    description: str
    parameters: Schema
    rule: dict[str, Any]
    rule_text: str
    credential: Credential
    notes: tuple[str, ...]

    @property
    def what(self) -> str:
        """The operation as people call it: GET /pets."""
        return str(self.operation)

    @property
    def object_name(self) -> str:
        """The metadata.name of its objects."""
        return self.name.replace("_", "-")

    @property
    def annotations(self) -> Mapping[str, str]:
        """Annotations: hints on its effects by its method, and the rule."""
        method = self.operation.method
        hints = {
            READ_ONLY: method in _READ_ONLY,
            IDEMPOTENT: method in _IDEMPOTENT,
            DESTRUCTIVE: method == "delete",
        }
        return {**{name: "true" for name, hint in hints.items() if hint}, HTTP: self.rule_text}

    @property
    def url(self) -> str:
        """The URL of its calls."""
        return str(self.rule["url"])

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of the operation."""
        return self.operation.tags

    @property
    def details(self) -> Mapping[str, str]:
        """The id of the operation."""
        return {"operation_id": self.operation.id}


def import_operations(
    description: Description, options: OpenApiOptions, chosen: Sequence[bool] | None = None
) -> list[Imported | Skipped]:
    """Return the results for the chosen operations, in their order. By default all operations are chosen."""
    operations = description.operations
    names = name_operations(operations, options.prefix)
    return [
        _import_operation(operation, name, description, options)
        for number, (operation, name) in enumerate(zip(operations, names, strict=True))
        if chosen is None or chosen[number]
    ]


def api_name(description: Description, options: OpenApiOptions) -> str:
    """Return the short name of an API.

    It comes from the given prefix, else from the API's title, else from a server's host.
    """
    host = next((server.partition("//")[2].partition("/")[0] for server in description.servers if server), "")
    return to_slug(options.prefix or description.title, host)


def _import_operation(
    operation: Operation, name: str, description: Description, options: OpenApiOptions
) -> Imported | Skipped:
    api = api_name(description, options)
    credential = credential_for(operation, description, options.credential, api, options.keep)
    if reason := _find_obstacle(operation) or credential.problem:
        return _skip_operation(operation, name, reason)
    try:
        flat, parameters = _fit_arguments(operation, credential, options.fixed)
        rule = rule_for(operation, flat, credential)
        text = write_yaml(rule).rstrip("\n")
        parse_rule(text, parameters)
    except (CannotImport, BadDescription) as error:
        return _skip_operation(operation, name, str(error))
    except InvalidRule as error:
        return _skip_operation(operation, name, f"no rule can say it: {error}")
    except SchemaError as error:
        return _skip_operation(
            operation, name, f"its parameters cannot be described: {error.path or '/'}: {error.message}"
        )
    return Imported(
        operation,
        name,
        f"{api}.{name}",
        _description_of(operation, name, description),
        parameters,
        rule,
        text,
        credential,
        tuple(dict.fromkeys(flat.notes)),
    )


def _skip_operation(operation: Operation, name: str, reason: str) -> Skipped:
    return Skipped(str(operation), name, reason, operation.tags)


def _find_obstacle(operation: Operation) -> str:
    """Return the reason an operation cannot be a tool, else "".

    The reason does not depend on its parameters.
    """
    if operation.method in _UNUSABLE:
        return f"no tool: {operation.method.upper()} {_UNUSABLE[operation.method]}"
    return operation.problem or openapi3.find_problem(operation.server)


def _fit_arguments(
    operation: Operation, credential: Credential, fixed: Mapping[str, str]
) -> tuple[FlatRequest, Schema]:
    """Return the arguments, as deep as the size limit allows.

    Raises `SchemaError` or `CannotImport` if no depth is within the limit.
    """
    problem: SchemaError | None = None
    for depth in _DEPTHS:
        try:
            flat, schema = flatten_operation(operation, credential, fixed, depth)
        except SchemaError as error:
            if error.reason not in ("TooLarge", "TooManyProperties", "TooDeep"):
                raise
            problem = error
            continue
        parameters = simplify_schema(schema)
        size = len(json.dumps(parameters, ensure_ascii=False).encode())
        if size <= MAX_PARAMETERS:
            return flat, parameters
    raise problem or CannotImport(f"its parameters take more than {MAX_PARAMETERS} bytes to describe")


def _description_of(operation: Operation, name: str, description: Description) -> str:
    summary, more = operation.summary, operation.description
    if len(more.split()) > 2 and set(split_words(summary)) <= {
        *split_words(operation.id),
        *split_words(name),
    }:
        summary = ""  # the function's name in other words
    text = describe_operation(summary, more)
    if says_nothing(text, operation.id):
        text = f"{name.replace('_', ' ').capitalize()}: {operation} of {description.title or 'this API'}."
    return f"Deprecated: {text}"[:1024] if operation.deprecated else text
