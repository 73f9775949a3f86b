"""The patterns of LIKE (CESQL 1.0, section 3.4.3)."""

import re
from collections.abc import Callable

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
        whole = compiled[0]
        return lambda text: whole.fullmatch(text) is not None
    head, *middle, tail = compiled
    tail_size = len(pieces[-1])

    def matches(text: str) -> bool:
        found = head.match(text)
        for piece in middle:
            found = found and piece.search(text, found.end())
        start = len(text) - tail_size
        return found is not None and found.end() <= start and tail.match(text, start) is not None

    return matches
