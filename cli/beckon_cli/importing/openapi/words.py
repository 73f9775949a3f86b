"""Words of identifiers and paths: split, freed of noise, singular and plural."""

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
    found: list[str] = []
    for part in re.split(r"[^A-Za-z0-9]+", text):
        found += _glue_numbers(_SPLIT.findall(part))
    return [word.lower() for word in found]


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
    """Return the singular of a noun.

    It follows the rules of nearly all English nouns.
    """
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
    found: list[str] = []
    for part in parts:
        if part.isdigit() and found and len(part) <= 2 and not found[-1][-1].isdigit():
            found[-1] += part
        else:
            found.append(part)
    return found
