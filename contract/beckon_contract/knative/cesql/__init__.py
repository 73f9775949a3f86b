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
    parse,
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
