"""CESQL 1.0, the CloudEvents SQL expression language (cloudevents/spec cesql/spec.md).

Here belongs the language alone: what a Trigger does with an expression is in `filters`.
"""

from beckon_contract.cesql.expression import Evaluation, Expression, parse
from beckon_contract.cesql.syntax import MAX_DEPTH, MAX_LENGTH, CesqlSyntaxError
from beckon_contract.cesql.values import CesqlError, ErrorKind

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
