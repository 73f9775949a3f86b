"""Text of models, tools and servers on a terminal, which would obey control characters in it.

So it would obey those of Unicode's bidirectional algorithm (UAX 9) that let a text look like another one.
"""

_VISIBLE: dict[int, str | None] = {
    **{code: chr(0x2400 + code) for code in range(0x20)},  # Unicode's pictures of control characters
    0x7F: "\N{SYMBOL FOR DELETE}",
    **dict.fromkeys(range(0x80, 0xA0), "\N{REPLACEMENT CHARACTER}"),
    **dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\N{REPLACEMENT CHARACTER}"),
    ord("\t"): "\t",
    ord("\n"): "\n",
    ord("\r"): None,  # it would let a line overwrite itself
}


def printable(text: str) -> str:
    """Return a text with its control characters made visible, but for tabs and line feeds."""
    return text if text.isprintable() else text.translate(_VISIBLE)
