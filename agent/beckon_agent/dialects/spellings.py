"""The spellings of a text: one plain form for comparisons, and the texts hidden in it.

A page, a file or a mail shows a call with tags between its letters, with line numbers, or encoded. Nothing
here is exact: each function gives one more text to search, and a text without the form stays as it is.
"""

import base64
import html
import quopri
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Final
from urllib.parse import unquote

_ROUNDS: Final = 4  # of escapes within escapes
_NESTED: Final = 3  # of encodings within encodings

# Letters of other scripts that look like Latin ones: Cyrillic, Greek, Armenian, Cherokee, Latin extensions,
# and small capitals.
_ALIKE: Final = dict(zip(
    "аеорсухіјѕһԁԛԝкмтвнгпиαοενρυτικηχωμσɡıɑⅼ"  # that is the point
    "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡʏᴢ",
    "aeopcyxijshdqwkmtbhrnuaoevputiknxwmsgial"
    "abcdefghijklmnopqrstuvwyz",
    strict=True,
))  # fmt: skip
_LOOKING_LATIN = re.compile(f"[{''.join(_ALIKE)}]")
_FRAMED = re.compile("[\U0001f150-\U0001f169\U0001f170-\U0001f189\U0001f1e6-\U0001f1ff]")  # as pictures
_FRAMES: Final = (0x1F1E6, 0x1F170, 0x1F150)
_WORDS = re.compile(r"[a-z0-9]+|[^\W_a-z0-9]+")
_UNICODE_ESCAPE = re.compile(r"\\+(?:u\{?([0-9a-fA-F]{4,6})\}?|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2}))")
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_BLANK_ESCAPE = re.compile(r"\\+[nrt]")
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u20dd-\u20e0"
    "\u20e2-\u20e4\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffc\U0001d173-\U0001d17a\U000e0001\U000e0100-\U000e01ef]"
)
_TAG_CHARACTERS = re.compile("[\U000e0020-\U000e007e]")  # invisible copies of ASCII
_MARKS = re.compile(r"[\u0300-\u036f]")

_HTML = re.compile(r"<!--.*?-->|</?[a-zA-Z][^<>]*>", re.DOTALL)
_LINE_PREFIX = re.compile(
    r"^[ \t>|]*(?:"
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.,Z+-]*\]?"  # a time
    r"|(?:[\w.@/\\-]+:)?\d+(?=[:|)\].\s])[:|)\].]?"  # a number, with a path or not
    r"|>)[ \t]*",
    re.MULTILINE,
)
_QUOTED_PRINTABLE = re.compile(r"=(?:[0-9A-F]{2}|\r?\n)")
_OCTAL = re.compile(r"\\([0-3]?[0-7]{2})")
_CSS = re.compile(r"\\([0-9a-fA-F]{1,6})[ \t\n]?")

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}(?:\s*\n\s*[A-Za-z0-9+/_-]{4,})*={0,2}")
_BASE32 = re.compile(r"[A-Z2-7]{16,}(?:\s*\n\s*[A-Z2-7]{4,})*={0,6}")
_HEX = re.compile(r"(?:(?:0x)?[0-9a-fA-F]{2}[ :,;]*){8,}")
_DECIMAL = re.compile(r"(?:\d{1,3}[ \n,;]+){8,}\d{1,3}")
_BINARY = re.compile(r"(?:[01]{8}[ \n,;]*){8,}")


def find_words(text: str) -> list[str]:
    """Return the words of a text in its plain form."""
    return _WORDS.findall(to_plain_text(text))


def split_words(plain: str) -> list[str]:
    """Return the words of a plain text."""
    return _WORDS.findall(plain)


def to_letters(text: str) -> str:
    """Return the letters and digits of a text in its plain form."""
    return "".join(find_words(text))


def to_plain_text(text: str) -> str:
    """Resolve escapes and entities, drop what is not seen, and unify similar letters."""
    for _ in range(_ROUNDS):
        before = text
        if "&" in text:
            text = html.unescape(text)
        if "%" in text:
            text = unquote(text)
        if "\\" in text:
            text = _UNICODE_ESCAPE.sub(_resolve_escape, text)
            text = _SURROGATES.sub(_join_surrogates, text)
        if text == before:
            break
    text = _CONTROLS.sub("", _BLANK_ESCAPE.sub(" ", text) if "\\" in text else text)
    if text.isascii():
        return text.casefold()
    text = _TAG_CHARACTERS.sub(lambda match: chr(ord(match[0]) - 0xE0000), text)
    text = _FRAMED.sub(_unframe, text)
    text = unicodedata.normalize("NFKD", text)
    text = _MARKS.sub("", _INVISIBLE.sub("", text))
    text = unicodedata.normalize("NFKC", text).casefold()
    return _LOOKING_LATIN.sub(lambda match: _ALIKE[match[0]], text)


def rewrite_texts(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the texts in each other spelling that changes one of them."""
    for rewrite in _REWRITES:
        rewritten = [rewrite(text) for text in texts]
        if rewritten != list(texts):
            yield rewritten


def decode_runs(text: str, depth: int = 0) -> Iterator[str]:
    """Yield the texts in runs of base64, base32, hexadecimal, decimal and binary digits.

    Such runs in these texts are decoded, too.
    """
    if depth == _NESTED:
        return
    for pattern, decode in _RUNS:
        for match in pattern.finditer(text):
            inner = decode(match[0])
            if inner:
                yield inner
                yield from decode_runs(inner, depth + 1)


def _resolve_escape(match: re.Match[str]) -> str:
    code = int(next(filter(None, match.groups())), 16)
    return chr(code) if code <= 0x10FFFF else " "


def _join_surrogates(match: re.Match[str]) -> str:
    return match[0].encode("utf-16", "surrogatepass").decode("utf-16")


def _unframe(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(ord("a") + code - next(first for first in _FRAMES if code >= first))


def _join_at_tags(text: str) -> str:
    """Remove the tags of HTML: what they divide is one word for a reader."""
    return _HTML.sub("", text) if "<" in text else text


def _split_at_tags(text: str) -> str:
    return _HTML.sub(" ", text) if "<" in text else text


def _without_line_prefixes(text: str) -> str:
    """Remove line numbers, paths, times and marks of quotation before the lines."""
    return _LINE_PREFIX.sub("", text) if "\n" in text else text


def _from_quoted_printable(text: str) -> str:
    if not _QUOTED_PRINTABLE.search(text):
        return text
    return quopri.decodestring(text.encode("utf-8", "replace")).decode("utf-8", "replace")


def _from_octal(text: str) -> str:
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text) if "\\" in text else text


def _from_css(text: str) -> str:
    return _CSS.sub(_resolve_escape, text) if "\\" in text else text


_REWRITES: Final = (
    _join_at_tags,
    _split_at_tags,
    _without_line_prefixes,
    _from_quoted_printable,
    _from_octal,
    _from_css,
)


def _of_base64(run: str) -> str:
    """Return the text in lines of base64, or in the first line. It is empty if there is none."""
    for written in dict.fromkeys((re.sub(r"\s", "", run), run.split(maxsplit=1)[0])):
        bare = written.rstrip("=").replace("-", "+").replace("_", "/")
        try:
            content = base64.b64decode(bare + "=" * (-len(bare) % 4))
            return content.decode("utf-16-le" if b"\0" in content else "utf-8")
        except ValueError:  # neither base64 nor text
            continue
    return ""


def _of_base32(run: str) -> str:
    bare = re.sub(r"[\s=]", "", run)
    try:
        return base64.b32decode(bare + "=" * (-len(bare) % 8)).decode()
    except ValueError:
        return ""


def _of_hex(run: str) -> str:
    try:
        return bytes.fromhex(re.sub(r"0x|[ :,;]", "", run)).decode()
    except ValueError:
        return ""


def _of_decimal(run: str) -> str:
    try:
        return bytes(map(int, re.findall(r"\d+", run))).decode()
    except ValueError:
        return ""


def _of_binary(run: str) -> str:
    try:
        return bytes(int(digits, 2) for digits in re.findall(r"[01]{8}", run)).decode()
    except ValueError:
        return ""


_RUNS: Final[Sequence[tuple[re.Pattern[str], Callable[[str], str]]]] = (
    (_BASE64, _of_base64),
    (_BASE32, _of_base32),
    (_HEX, _of_hex),
    (_DECIMAL, _of_decimal),
    (_BINARY, _of_binary),
)
