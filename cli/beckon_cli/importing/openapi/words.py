"""Words for names, and texts for descriptions."""

import html
import re

_SPLIT = re.compile(
    r"[Vv]\d+(?:(?:alpha|beta)\d+)?(?![a-z])|[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+"
)
_VERSION = re.compile(r"v\d+(?:p\d+)?(?:alpha|beta)?\d*|\d+")
_EXTENSION = re.compile(r"\.(?:json|xml|html|php|aspx?|txt|csv|rss)$", re.IGNORECASE)
_NOISE = frozenset({"api", "apis", "rest", "json", "www"})
_SINGULAR = frozenset(
    {"news", "series", "species", "status", "sms", "https", "dns", "address", "always", "is"}
)


def split_words(text: str) -> list[str]:
    """Return the words of camelCase, snake_case, kebab-case or anything between, in lower case."""
    words: list[str] = []
    for part in re.split(r"[^A-Za-z0-9]+", text):
        words += _glue_numbers(_SPLIT.findall(part))
    return [word.lower() for word in words]


def path_words(segment: str) -> list[str]:
    """Return the words of a path's literal segment, versions and the like left out."""
    words = split_words(_EXTENSION.sub("", segment))
    return [word for word in words if word not in _NOISE and not is_version(word)]


def is_version(word: str) -> bool:
    """Return True for a number or a version, such as v2beta1."""
    return _VERSION.fullmatch(word) is not None


def is_plural(word: str) -> bool:
    """Return True if a word looks like a plural noun."""
    return to_singular(word) != word


def to_singular(word: str) -> str:
    """Return the singular of a noun. It follows the rules of nearly all English nouns."""
    if word in _SINGULAR or len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    return word[:-1]


def argument_name(name: str) -> str:
    """Return the name of a parameter as every provider takes it; camelCase stays as it is."""
    cleaned = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or "value"
    return (cleaned if cleaned[0].isalpha() else f"n_{cleaned}")[:60].rstrip("_")


def _glue_numbers(parts: list[str]) -> list[str]:
    """Join a short number to the word before it: oauth2, s3."""
    glued: list[str] = []
    for part in parts:
        if part.isdigit() and glued and len(part) <= 2 and not glued[-1][-1].isdigit():
            glued[-1] += part
        else:
            glued.append(part)
    return glued


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
    ends = [match.end() for match in _END.finditer(short)]
    if ends and ends[-1] >= limit // 2:
        return short[: ends[-1]]
    return f"{short.rpartition(' ')[0] or short}…"
