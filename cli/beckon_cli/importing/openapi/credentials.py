"""The credentials an API requires of its callers.

They are not arguments of a model; the adapter's owner has them.
"""

import re
from collections.abc import Iterator, Mapping

from beckon_cli.importing.credential import Credential, Part
from beckon_cli.importing.openapi.operations import Description, Operation, Parameter, Scheme
from beckon_cli.importing.openapi.wording import to_plain_text
from beckon_cli.importing.openapi.words import is_version, split_words

_SECRET_NAMES = frozenset({
    "accesskey", "accesstoken", "apikey", "apitoken", "appid", "appkey", "authtoken", "clientsecret", "key",
    "privatetoken", "secret", "subscriptionkey", "token", "wskey", "xapikey", "xapitoken", "xauthtoken",
})  # fmt: skip
_SECRET_WORDS = re.compile(
    r"\b(?:api|access|auth(?:entication)?|application|developer|subscription|private)[ _-]?(?:key|token)\b|"
    r"\bgetting a token\b",
    re.IGNORECASE,
)
_SURE = _SECRET_NAMES - {"key", "token", "secret", "appid"}
_TITLE_NOISE = frozenset({
    "a", "an", "and", "api", "apis", "by", "documentation", "docs", "for", "http", "interactive", "of",
    "open", "openapi", "public", "rest", "service", "services", "specification", "swagger", "the", "ui",
    "v1", "v2", "v3", "v4", "web",
})  # fmt: skip


def to_slug(title: str, otherwise: str = "api") -> str:
    """Return a short name for an API, of lower-case letters, digits and dashes."""
    found = re.findall(r"[a-z0-9]+", title.lower())
    words = [word for word in found if word not in _TITLE_NOISE and not is_version(word)]
    text = "-".join(words or split_words(otherwise) or ["api"])[:30].strip("-")
    return text if text[:1].isalpha() else f"api-{text}"


def credential_for(
    operation: Operation, description: Description, wanted: str, name: str, keep: frozenset[str]
) -> Credential:
    """Return the credential of an operation.

    Its parts come from the first security requirement, and from parameters that are keys or tokens.
    `wanted` is the name given by the user, `name` the default. The security requirement is ignored if the
    operation allows anonymous calls as well and nothing is `wanted`. Parameters that are named in `keep`
    stay arguments.
    """
    is_open = () in operation.security and not wanted
    alternatives = [alternative for alternative in operation.security if alternative] if not is_open else []
    parts = dict.fromkeys(_scheme_parts(alternatives[0], description.schemes) if alternatives else ())
    schemes = {(each.kind, each.name) for each in description.schemes.values()}
    for each in operation.parameters:
        if each.name not in keep and each.place != "path" and _is_secret(each, schemes, parts):
            parts[Part(each.place, each.name, to_plain_text(each.description, 100))] = None
    found = _without_doubles(part for part in parts if part.name not in keep)
    unknown = [part for part in found if part.kind not in ("bearer", "basic", "header", "query", "cookie")]
    if unknown:
        return Credential(
            problem=f"wants {unknown[0].kind or 'an unknown kind of credential'}, which no rule has"
        )
    return Credential(wanted or name, found) if found else Credential(wanted)


def _scheme_parts(alternative: tuple[str, ...], schemes: Mapping[str, Scheme]) -> Iterator[Part]:
    for title in alternative:
        scheme = schemes.get(title)
        if scheme is not None:
            yield Part(scheme.kind, scheme.name, to_plain_text(scheme.hint, 100))


def _is_secret(each: Parameter, schemes: set[tuple[str, str]], parts: Mapping[Part, None]) -> bool:
    """Return True if a parameter is a key or a token.

    It belongs to one of the schemes, or is recognised by its name and description.
    """
    if any(part.kind == each.place and part.name == each.name for part in parts):
        return False
    if (each.place, each.name) in schemes:
        return True
    if each.place == "header" and each.name.lower() == "authorization":
        return False
    name = re.sub(r"[^a-z0-9]", "", each.name.lower())
    if name in _SURE:
        return True
    return name in _SECRET_NAMES and bool(_SECRET_WORDS.search(each.description))


def _without_doubles(parts: Iterator[Part]) -> tuple[Part, ...]:
    found: dict[tuple[str, str], Part] = {}
    for part in parts:
        found.setdefault((part.kind, part.name), part)
    return tuple(found.values())
