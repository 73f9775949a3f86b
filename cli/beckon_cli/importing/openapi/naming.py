"""Names of tools: an operation's own, cleaned, or one made of its method and its path.

A name depends on the whole description and never on what of it is chosen, so that a second import gives the
same names to the same operations.
"""

import hashlib
import re
from collections.abc import Sequence

from beckon_cli.importing.openapi.operations import Operation
from beckon_cli.importing.openapi.words import is_plural, is_version, path_words, split_words, to_singular

MAX_LENGTH = 64

_SEGMENT_PARAMETER = re.compile(r"\{[^{}]*\}")
_PARAMETER = re.compile(r"\{([^{}]+)\}")
_LISTS = re.compile(r"\s*(?:list|lists|search|searches)\b", re.IGNORECASE)
_HASH = re.compile(r"[0-9a-f]{16,}|[0-9a-f]{8}-[0-9a-f]{4}-.*", re.IGNORECASE)
_VERBS = {"post": "create", "put": "update", "patch": "update", "delete": "delete"}
_VERBS_APART = {**_VERBS, "put": "replace"}
# What generators write round a name that a person chose: getPetUsingGET_1, PetsController_find.
_USING = re.compile(r"_using_(?:get|head|post|put|patch|delete|options)(?:_\d+|\d+)?$")
_FILLING = frozenset({"controller", "handler", "endpoint", "the", "a", "an"})
# Last words of a path that say what to do rather than what is dealt with.
_ACTIONS = frozenset({
    "accept", "activate", "add", "apply", "approve", "archive", "assign", "authorize", "block", "build",
    "calculate", "cancel", "capture", "check", "clear", "clone", "close", "complete", "confirm", "convert",
    "copy", "deactivate", "decline", "deploy", "disable", "dock", "download", "enable", "execute", "export",
    "fork", "generate", "import", "install", "invite", "jump", "lock", "login", "logout", "mark", "merge",
    "move", "navigate", "notify", "orbit", "parse", "pause", "ping", "play", "preview", "publish", "query",
    "read", "refresh", "register", "reject", "release", "remove", "rename", "reopen", "reset", "restart",
    "restore", "resume", "retry", "revoke", "revert", "run", "scan", "search", "send", "share", "star",
    "start", "stop", "subscribe", "submit", "survey", "sync", "test", "track", "transform", "translate",
    "trigger", "unarchive", "unlock", "unpublish", "unstar", "unsubscribe", "update", "upload", "validate",
    "verify",
})  # fmt: skip


def name_operations(operations: Sequence[Operation], prefix: str = "") -> list[str]:
    """Return a name for every operation, all different, of at most 64 of `a-z0-9_`, a letter first."""
    start = split_words(prefix)
    wanted = [_operation_id_words(operation) or _make_words(operation) for operation in operations]
    for refined in (_with_version, _with_parameters, _with_method, _with_path):
        groups: dict[str, list[int]] = {}
        for number, words in enumerate(wanted):
            groups.setdefault("_".join(words), []).append(number)
        for group in groups.values():
            if len(group) > 1:
                combined = [operations[number] for number in group]
                for number in group:
                    wanted[number] = refined(operations[number], wanted[number], combined)
    used: set[str] = set()
    return [
        _unused_name([*start, *words], operation, used)
        for operation, words in zip(operations, wanted, strict=True)
    ]


def _operation_id_words(operation: Operation, *, versions: bool = False) -> list[str]:
    """Return the words of a useful operationId.

    Returns none if it is missing or a hash, or says no more than the path does.
    """
    if not operation.id or _HASH.fullmatch(operation.id):
        return []
    text = _USING.sub("", "_".join(split_words(operation.id)))
    text = _without_path(text, operation)
    words = [word for word in text.split("_") if word and word not in _FILLING]
    if _restates_path(words, operation):
        return []
    if not versions:
        words = [word for word in words if not _is_version_word(word)]
    return words if len("".join(words)) > 2 and words[0].isalpha() and words != [operation.method] else []


def _restates_path(words: list[str], operation: Operation) -> bool:
    """Return True if an operationId repeats the path: getV1UsersIdOrders.

    The path has parameters or versions, and the operationId includes them.
    """
    path = split_words(operation.path.partition("?")[0])
    shown = any(_is_version_word(word) for word in path) or "{" in operation.path
    return shown and set(words[1:]) - {"by", "and"} == set(path) - {"by", "and"}


def _is_version_word(word: str) -> bool:
    return re.fullmatch(r"v\d+(?:(?:alpha|beta)\d+)?", word) is not None


def _without_path(text: str, operation: Operation) -> str:
    """Remove the suffix added by FastAPI to a function's name. The suffix is the path and the method."""
    path = "_".join(split_words(operation.path))
    tail = f"_{path}_{operation.method}"
    return text.removesuffix(tail) if path and text.endswith(tail) and text != tail else text


def _make_words(operation: Operation) -> list[str]:
    """Return a verb and nouns: GET /users/{id}/orders is list_user_orders."""
    segments = [part for part in operation.path.partition("?")[0].split("/") if part]
    nouns: list[str] = []
    for position, segment in enumerate(segments):
        words = path_words(_SEGMENT_PARAMETER.sub(" ", segment))
        if words and _names_one(segments[position + 1 :]):
            words[-1] = to_singular(words[-1])
        nouns += [word for word in words if word not in nouns[-len(words) :]]
    if not nouns:
        nouns = [word for segment in segments for word in split_words(segment) if not is_version(word)]
    return _make_phrase(
        operation, nouns or ["root"], ends_in_one=bool(segments) and _names_one(segments[-1:])
    )


def _names_one(following: list[str]) -> bool:
    """Return True if exactly one parameter follows.

    One parameter picks an item of several; more of them are a query written as a path.
    """
    are = [part.startswith("{") and part.partition("}")[2] in ("", ".json") for part in following[:2]]
    return are[:1] == [True] and are[1:] != [True]


def _make_phrase(operation: Operation, nouns: list[str], *, ends_in_one: bool) -> list[str]:
    method, last = operation.method, nouns[-1]
    if method not in ("get", "delete") and not ends_in_one and last in _ACTIONS:
        return [last, *([*nouns[:-2], to_singular(nouns[-2])] if len(nouns) > 1 else [])]
    if method == "get":
        several = _LISTS.match(operation.summary or operation.description)
        if several and not is_plural(last):
            nouns = [*nouns[:-1], f"{last}s"]
        verb = "list" if not ends_in_one and (several or is_plural(last)) else "get"
    else:
        verb = _VERBS.get(method, method)
        if method == "post" and not ends_in_one:
            nouns = [*nouns[:-1], to_singular(last)]
    return nouns if nouns[0] == verb and len(nouns) > 1 else [verb, *nouns]


def _with_version(operation: Operation, words: list[str], _group: list[Operation]) -> list[str]:
    """Distinguish operations of one name by the versions in their ids."""
    return _operation_id_words(operation, versions=True) or words


def _with_parameters(operation: Operation, words: list[str], group: list[Operation]) -> list[str]:
    """Distinguish operations of one name by their path parameters.

    Parameters common to all of them are left out.
    """
    if operation.id and not _restates_path(split_words(operation.id), operation):
        return words
    wanted = [_PARAMETER.findall(each.path) for each in group]
    shared = set(wanted[0]).intersection(*wanted[1:])
    more = [
        word
        for name in _PARAMETER.findall(operation.path)
        if name not in shared
        for word in split_words(name)
    ]
    return [*words, "by", *dict.fromkeys(more)] if more else words


def _with_method(operation: Operation, words: list[str], group: list[Operation]) -> list[str]:
    """Distinguish operations of one name by their methods, if these differ."""
    if len({each.method for each in group}) == 1:
        return words
    verb = _VERBS_APART.get(operation.method, operation.method)
    return [verb, *(words[1:] if words[0] in {*_VERBS.values(), "get", "list", verb} else words)]


def _with_path(operation: Operation, words: list[str], _group: list[Operation]) -> list[str]:
    """Distinguish operations of one name by their whole paths.

    Nouns stay singular or plural as in the path.
    """
    literal = _SEGMENT_PARAMETER.sub(" ", operation.path.partition("?")[0])
    in_path = [word for segment in literal.split("/") for word in path_words(segment)]
    return (
        [words[0], *in_path]
        if not operation.id or _restates_path(split_words(operation.id), operation)
        else words
    )


def _unused_name(words: list[str], operation: Operation, taken: set[str]) -> str:
    """Return an unused short name, and mark it as taken."""
    name = _shorten_name(words, operation)
    number = 1
    while name in taken:
        number += 1
        name = f"{_shorten_name(words, operation)[: MAX_LENGTH - 4]}_{number}"
    taken.add(name)
    return name


def _shorten_name(words: list[str], operation: Operation) -> str:
    """Join words to at most 64 characters: without small ones, then with a hash in place of the rest."""
    name = "_".join(words)
    if len(name) > MAX_LENGTH:
        unchanged = [
            word for word in words if word not in ("by", "of", "for", "in", "to", "and", "with", "id")
        ]
        name = "_".join(dict.fromkeys(unchanged))
    if len(name) > MAX_LENGTH:
        digest = hashlib.sha256(str(operation).encode()).hexdigest()[:6]
        name = f"{name[: MAX_LENGTH - 7].rpartition('_')[0]}_{digest}"
    return name if name[0].isalpha() else f"call_{name}"[:MAX_LENGTH]
