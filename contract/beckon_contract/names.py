"""Tool names accepted by every provider.

Each name leads back to exactly one EventType.

A name is 1 to 64 characters of `[a-zA-Z0-9_]` and starts with a letter: the narrowest that
providers ask for (OpenAI: `^[a-zA-Z0-9_-]{1,64}$`; Gemini wants a letter first). Most names
are the wanted one with every other character replaced by `_`. A name that is too long,
reserved, or wanted by several EventTypes gets a hash of the EventType's namespace and name.
So a name depends on its own EventType and on those that want the same name, on nothing else:
adding or removing one EventType can rename only those it collides with.
"""

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

MAX_LENGTH = 64
RESERVED = frozenset({"find_tools"})  # what the agent itself offers beside the catalogue

_NOT_ALLOWED = re.compile(r"[^a-zA-Z0-9_]")
_LETTER_FIRST = re.compile(r"[a-zA-Z]")
_PREFIX = "tool_"
# 50 bits keep thousands of colliding names apart; all 256 are for the one who searches for a clash.
_SHORT, _FULL = 10, 52
_HASHED = re.compile(rf"__([a-z2-7]{{{_SHORT}}}|[a-z2-7]{{{_FULL}}})\Z")


class Identity(NamedTuple):
    """The EventType of a tool name: namespace and metadata.name."""

    namespace: str
    name: str


def sanitise(wanted: str) -> str:
    """Return `wanted` with only the allowed characters and a letter first; never empty, any length."""
    allowed = _NOT_ALLOWED.sub("_", wanted)
    return allowed if _LETTER_FIRST.match(allowed) else _PREFIX + allowed


def assign_names(wanted: Mapping[Identity, str]) -> dict[Identity, str]:
    """Return a different name for every identity; the same for the same set in any order.

    `wanted` holds what each would like to be called: its metadata.name or the annotation.
    """
    plain = {identity: sanitise(text) for identity, text in wanted.items()}
    uses = Counter(plain.values())
    names = {
        identity: name if uses[name] == 1 and _needs_no_hash(name) else _hashed(name, identity, _SHORT)
        for identity, name in plain.items()
    }
    uses = Counter(names.values())
    return {
        identity: name if uses[name] == 1 else _hashed(plain[identity], identity, _FULL)
        for identity, name in names.items()
    }


def rivals(wanted: Mapping[Identity, str]) -> dict[Identity, tuple[Identity, ...]]:
    """Return the rivals of every identity for its wanted name.

    Identities without rivals are left out; rivals are sorted.
    """
    users: dict[str, list[Identity]] = {}
    for identity, text in wanted.items():
        users.setdefault(sanitise(text), []).append(identity)
    crowds = [sorted(crowd) for crowd in users.values() if len(crowd) > 1]
    return {one: tuple(other for other in crowd if other != one) for crowd in crowds for one in crowd}


def _needs_no_hash(name: str) -> bool:
    """Return True if a name needs no hash.

    A name that looks as if it had one could collide with a hashed name.
    """
    return len(name) <= MAX_LENGTH and name not in RESERVED and not _HASHED.search(name)


def _hashed(name: str, identity: Identity, digits: int) -> str:
    # The length in front keeps ("a", "bc") and ("ab", "c") apart, whatever the characters.
    text = f"{len(identity.namespace)}:{identity.namespace}{identity.name}"
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    suffix = base64.b32encode(digest).decode("ascii").lower()[:digits]
    return f"{name[: MAX_LENGTH - digits - 2]}__{suffix}"
