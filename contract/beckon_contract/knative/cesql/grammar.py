"""The grammar of CESQL (CESQL 1.0, sections 2 and 3.6), from text to closures.

LIKE has patterns of its own (section 3.4.3).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import cast

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from beckon_contract.knative.cesql import evaluation
from beckon_contract.knative.cesql.evaluation import call
from beckon_contract.knative.cesql.expression import (
    MAX_DEPTH,
    MAX_INTEGER,
    MAX_LENGTH,
    MIN_INTEGER,
    CesqlSyntaxError,
    Evaluator,
)

_PART = re.compile(r"\\[%_]|.", re.DOTALL)


def compile_pattern(pattern: str) -> Callable[[str], bool]:
    r"""Return the matcher of a pattern: % any characters, _ one character, \% and \_ themselves.

    The pattern is cut at each % and its pieces are searched one after the other, the leftmost
    place first. That decides in time pattern times text: one regular expression with many
    wildcards would let a hostile text take for ever.
    """
    pieces: list[list[str]] = [[]]
    for part in _PART.findall(pattern):
        if part == "%":
            pieces.append([])
        else:
            pieces[-1].append("." if part == "_" else re.escape(part[-1]))
    compiled = [re.compile("".join(piece), re.DOTALL) for piece in pieces]
    if len(compiled) == 1:
        single = compiled[0]
        return lambda text: single.fullmatch(text) is not None
    head, *middle, tail = compiled
    tail_size = len(pieces[-1])

    def matches(text: str) -> bool:
        match = head.match(text)
        for piece in middle:
            match = match and piece.search(text, match.end())
        start = len(text) - tail_size
        return match is not None and match.end() <= start and tail.match(text, start) is not None

    return matches


# Binary operators of one precedence are one flat rule, so that a long chain is no deep tree.
# Unary operators bind tighter than LIKE and IN, and those tighter than every other (section 3.6).
_GRAMMAR = r"""
?start: logic
?logic: comparison (LOGIC comparison)*
?comparison: sum (COMPARE sum)*
?sum: product ((PLUS | MINUS) product)*
?product: postfix (MULTIPLY postfix)*
?postfix: unary
    | postfix NOT? _LIKE STRING -> like
    | postfix NOT? _IN "(" logic ("," logic)* ")" -> contained
?unary: primary
    | NOT unary -> invert
    | MINUS unary -> negate
?primary: "(" logic ")" -> group
    | _EXISTS NAME -> exists
    | NAME "(" (logic ("," logic)*)? ")" -> call
    | NAME -> attribute
    | BOOLEAN -> boolean
    | PLUS? INTEGER -> integer
    | STRING -> string

LOGIC.2: /(AND|OR|XOR)(?![A-Z0-9_])/i
NOT.2: /NOT(?![A-Z0-9_])/i
_LIKE.2: /LIKE(?![A-Z0-9_])/i
_IN.2: /IN(?![A-Z0-9_])/i
_EXISTS.2: /EXISTS(?![A-Z0-9_])/i
BOOLEAN.2: /(TRUE|FALSE)(?![A-Z0-9_])/i
INTEGER.2: /[0-9]+(?![A-Z0-9_])/i
NAME: /[A-Z0-9][A-Z0-9_]*/i
STRING: /'(\\.|[^'\\])*'|"(\\.|[^"\\])*"/s
COMPARE: /<=|>=|<>|!=|<|>|=/
MULTIPLY: /[*\/%]/
PLUS: "+"
MINUS: "-"
%ignore /[ \t\r\n]+/
"""
_MIXED = (
    "AND, OR and XOR stand side by side: here they group from the left, as the specification says,"
    " in Knative's Go engine from the right; write parentheses"
)
_TIGHT_NOT = "NOT binds tighter than the operator after it: write NOT (a = b), a != b or a NOT LIKE b"
_FUNCTION_NAME = re.compile(r"[A-Z][A-Z_]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Node:
    """A parsed expression: evaluator, nesting depth and warnings.

    `warnings` name the parts that probably do not do what they say.

    `number` is set on an integer literal alone: only a minus sign makes 2147483648 valid.
    `inverts` is set on an open NOT.
    """

    evaluate: Evaluator
    depth: int = 1
    warnings: tuple[str, ...] = ()
    number: int | None = None
    inverts: bool = False


def parse_tree(text: str) -> Node:
    """Return the tree of an expression; raise `CesqlSyntaxError`."""
    if len(text) > MAX_LENGTH:
        raise CesqlSyntaxError(f"the expression has {len(text)} characters; at most {MAX_LENGTH} are taken")
    try:
        # With a transformer the parser returns what that returns, which its annotations do not say.
        node = cast("Node", _parser().parse(text))
    except UnexpectedInput as error:
        raise _syntax_error(text, error) from None
    return _combine(node.evaluate, [node], depth=0)


def _syntax_error(text: str, error: UnexpectedInput) -> CesqlSyntaxError:
    # Lark declares None and sets an integer; it is None or behind the text where the text ends.
    found_at: object = error.pos_in_stream
    position = found_at if isinstance(found_at, int) else len(text)
    if isinstance(error, UnexpectedCharacters) and text[position] in "'\"":
        return CesqlSyntaxError(f"column {position + 1}: a string that does not end; close it", position)
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        return CesqlSyntaxError("the expression ends too early; complete or remove its last part", len(text))
    excerpt = text[position : position + 20]
    return CesqlSyntaxError(f"column {position + 1}: {excerpt!r} was not expected here", position)


class _Builder(Transformer[Token, Node]):
    """Builds a node for every rule of the grammar, from the inside out."""

    def logic(self, children: list[Node | Token]) -> Node:
        """AND, OR and XOR, of one precedence and from left to right."""
        if len({str(child).upper() for child in children[1::2]}) > 1:
            return _binary(children, _MIXED)
        return _binary(children)

    def comparison(self, children: list[Node | Token]) -> Node:
        """Compare two values."""
        return _binary(children, *_open_not(children[0]))

    def sum(self, children: list[Node | Token]) -> Node:
        """Add and subtract."""
        return _binary(children)

    def product(self, children: list[Node | Token]) -> Node:
        """Multiply, divide, and take the remainder."""
        return _binary(children)

    def like(self, children: list[Node | Token]) -> Node:
        """LIKE and NOT LIKE."""
        operand = _nodes(children)[0]
        matcher = compile_pattern(_unquote(children[-1]))
        evaluate = evaluation.matches(operand.evaluate, matcher, negated=_is_negated(children))
        return _combine(evaluate, [operand], *_open_not(operand))

    def contained(self, children: list[Node | Token]) -> Node:
        """IN and NOT IN."""
        nodes = _nodes(children)
        operand, *elements = [node.evaluate for node in nodes]
        evaluate = evaluation.contained(operand, elements, negated=_is_negated(children))
        return _combine(evaluate, nodes, *_open_not(nodes[0]))

    def invert(self, children: list[Node | Token]) -> Node:
        """NOT."""
        (operand,) = _nodes(children)
        return replace(_combine(evaluation.invert(operand.evaluate), [operand]), inverts=True)

    def negate(self, children: list[Node | Token]) -> Node:
        """Unary minus; with an integer literal, a negative literal."""
        (operand,) = _nodes(children)
        if operand.number is not None and -operand.number >= MIN_INTEGER:
            return Node(evaluation.literal(-operand.number))
        return _combine(evaluation.negate(operand.evaluate), [operand])

    def group(self, children: list[Node | Token]) -> Node:
        """Parentheses."""
        (node,) = _nodes(children)
        return _combine(node.evaluate, [node])

    def exists(self, children: list[Node | Token]) -> Node:
        """EXISTS."""
        return Node(evaluation.exists(_attribute_name(children[0])))

    def attribute(self, children: list[Node | Token]) -> Node:
        """Name an attribute."""
        return Node(evaluation.attribute(_attribute_name(children[0])))

    def call(self, children: list[Node | Token]) -> Node:
        """Call a function."""
        name = str(children[0]).upper()
        if not _FUNCTION_NAME.fullmatch(name):
            raise CesqlSyntaxError(f"no function is called {name}: their names have only letters and _")
        nodes = _nodes(children)
        return _combine(call(name, [node.evaluate for node in nodes]), nodes)

    def boolean(self, children: list[Node | Token]) -> Node:
        """Read true or false."""
        return Node(evaluation.literal(str(children[0]).upper() == "TRUE"))

    def integer(self, children: list[Node | Token]) -> Node:
        """Read a decimal number; its range is checked with its sign."""
        number = int(str(children[-1]))
        return Node(evaluation.literal(number), number=number)

    def string(self, children: list[Node | Token]) -> Node:
        """Read a string."""
        return Node(evaluation.literal(_unquote(children[0])))


def _nodes(children: list[Node | Token]) -> list[Node]:
    return [child for child in children if isinstance(child, Node)]


def _is_negated(children: list[Node | Token]) -> bool:
    return isinstance(children[1], Token) and children[1].type == "NOT"


def _binary(children: list[Node | Token], *warnings: str) -> Node:
    """Return the node of a chain: operands at even places, operators between them."""
    nodes = _nodes(children)
    steps = [evaluation.STEPS[str(child).upper()] for child in children[1::2]]
    rest = zip(steps, (node.evaluate for node in nodes[1:]), strict=True)
    return _combine(evaluation.chain(nodes[0].evaluate, tuple(rest)), nodes, *warnings)


def _open_not(operand: Node | Token) -> tuple[str, ...]:
    return (_TIGHT_NOT,) if isinstance(operand, Node) and operand.inverts else ()


def _attribute_name(token: Node | Token) -> str:
    name = str(token).lower()
    if "_" in name:
        raise CesqlSyntaxError(f"no attribute is called {name!r}: their names have only a-z and 0-9")
    return name


def _unquote(token: Node | Token) -> str:
    """Return a string literal's text; only its own quote is escaped (section 2.2)."""
    text = str(token)
    return text[1:-1].replace(f"\\{text[0]}", text[0])


@cache
def _parser() -> Lark:
    """Return the parser, built in some milliseconds at the first use."""
    return Lark(_GRAMMAR, parser="lalr", lexer="basic", transformer=_Builder())


def _combine(evaluate: Evaluator, nodes: Sequence[Node], *warnings: str, depth: int = 1) -> Node:
    """Return the node of an operator over its operands, checked for size."""
    if any(node.number is not None and node.number > MAX_INTEGER for node in nodes):
        raise CesqlSyntaxError(f"an integer literal is beyond {MAX_INTEGER}, the largest of 32 bits")
    depth += max((node.depth for node in nodes), default=0)
    if depth > MAX_DEPTH:
        raise CesqlSyntaxError(f"the expression nests more than {MAX_DEPTH} levels; make it flatter")
    return Node(evaluate, depth, sum((node.warnings for node in nodes), ()) + warnings)
