"""CESQL 1.0, the CloudEvents SQL expression language (cloudevents/spec cesql/spec.md).

Here belongs the language alone: what a Trigger does with an expression is in `knative.filters`.
"""

from beckon_contract.knative.cesql.expression import (
    MAX_DEPTH,
    MAX_LENGTH,
    CesqlError,
    CesqlSyntaxError,
    ErrorKind,
    Evaluation,
    Expression,
)

__all__ = [
    "MAX_DEPTH",
    "MAX_LENGTH",
    "CesqlError",
    "CesqlSyntaxError",
    "ErrorKind",
    "Evaluation",
    "Expression",
    "parse",
]


def parse(expression: str) -> Expression:
    """Parse an expression; raise `CesqlSyntaxError` for any other text."""
    # Imported late: the parser takes 2 MB, and most filters have no expression.
    from beckon_contract.knative.cesql.grammar import parse_tree  # noqa: PLC0415  # see above

    node = parse_tree(expression)
    return Expression(expression, node.evaluate, tuple(dict.fromkeys(node.warnings)))
