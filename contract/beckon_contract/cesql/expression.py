"""A CESQL expression, ready to be evaluated against the attributes of events."""

from dataclasses import dataclass

from beckon_contract.cesql.values import Attributes, CesqlError, Evaluator, Failure, Value


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of an expression for one event.

    There is always a value, with the errors met on the way.
    """

    value: Value
    errors: tuple[CesqlError, ...] = ()


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression, with warnings about likely mistakes.

    `warnings` name the parts that probably do not do what they seem to say.

    `evaluator` gives the bare value, or a `Failure` where there was an error.
    """

    text: str
    evaluator: Evaluator
    warnings: tuple[str, ...] = ()

    def evaluate(self, attributes: Attributes) -> Evaluation:
        """Return the value for an event with these attributes; it never raises."""
        result = self.evaluator(attributes)
        if isinstance(result, Failure):
            return Evaluation(result.value, (result.error,))
        return Evaluation(result)


def parse(expression: str) -> Expression:
    """Parse an expression; raise `CesqlSyntaxError` for any other text."""
    # Imported late: the parser takes 2 MB, and most filters have no expression.
    from beckon_contract.cesql.grammar import parse_tree  # noqa: PLC0415  # see above

    node = parse_tree(expression)
    return Expression(expression, node.evaluate, tuple(dict.fromkeys(node.warnings)))
