"""Descriptions as people wrote them for a page, made short and plain for a model."""

import html
import re

MAX_TOOL = 1024  # characters, which is what models are shown of a tool
MAX_PARAMETER = 300
MAX_INNER = 160  # of a property inside an object

_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,500}>|<!--.*?-->", re.DOTALL)
_LINK = re.compile(r"!?\[([^\[\]]{0,300})\]\([^()\s]{0,500}(?:\s[^()]{0,200})?\)")
_MARKS = re.compile(r"(?m)^\s{0,3}(?:#{1,6}|>)\s+|\*\*|__|`")
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
_END = re.compile(r"[.!?](?=\s)")


def to_plain_text(text: str, limit: int) -> str:
    """Return a text without Markdown, HTML and hidden characters, on one line, cut after a sentence."""
    text = _CODE.sub(" ", text[: 20 * limit])
    text = html.unescape(_TAG.sub(" ", text))
    text = _MARKS.sub("", _LINK.sub(r"\1", _CONTROL.sub(" ", text)))
    text = " ".join(text.split())
    return text if len(text) <= limit else _cut_text(text, limit)


def describe_operation(summary: str, description: str, limit: int = MAX_TOOL) -> str:
    """Return a tool's description, made of a summary and a description.

    A text that is in both is written once.
    """
    first, more = to_plain_text(summary, limit), to_plain_text(description, limit)
    if not first or not more or more.lower().startswith(first.lower().rstrip(".")):
        return more or first
    if first.lower().startswith(more.lower().rstrip(".")):
        return first
    return _cut_text(f"{first if first[-1] in '.!?:' else f'{first}.'} {more}", limit)


def says_nothing(text: str, name: str) -> bool:
    """Return True if a description only repeats the name.

    Case and punctuation do not count; an empty description says nothing, too.
    """
    return re.sub(r"[^a-z0-9]", "", text.lower()) in ("", re.sub(r"[^a-z0-9]", "", name.lower()))


def _cut_text(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    short = text[: limit - 1]
    ends = [found.end() for found in _END.finditer(short)]
    if ends and ends[-1] >= limit // 2:
        return short[: ends[-1]]
    return f"{short.rpartition(' ')[0] or short}…"
