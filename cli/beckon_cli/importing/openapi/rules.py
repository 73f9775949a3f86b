"""The adapter's rule for an operation: the annotation `beckon.dev/http`."""

from typing import Any

from beckon_cli.importing.credential import Credential
from beckon_cli.importing.openapi.bodies import JSON
from beckon_cli.importing.openapi.operations import Operation
from beckon_cli.importing.openapi.slots import Flat, literal


def rule_for(operation: Operation, flat: Flat, credential: Credential) -> dict[str, Any]:
    """Return the rule as plain data, only what is not the default."""
    rule: dict[str, Any] = {
        "method": operation.method.upper(),
        "url": literal(operation.server) + flat.url_path,
    }
    headers = {**_accept(operation), **flat.headers}
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


def _accept(operation: Operation) -> dict[str, str]:
    """Ask for JSON where an operation can answer in several ways."""
    kinds = [kind.partition(";")[0].strip().lower() for kind in operation.answers]
    if len(set(kinds)) > 1 and JSON in kinds:
        return {"Accept": JSON}
    return {}
