"""API keys: their format, and lines with only their hashes.

A key is 32 random bytes, so it cannot be guessed: one round of SHA-256 protects it as well as a slow hash
would. A slow hash is for passwords that people choose, and strangers could use it to cause work.

A key is looked up by its hash. How long that takes depends on the hash alone. Without the key, no hash can
be brought nearer to a stored one, so the time reveals nothing either.
"""

import hashlib
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import orjson

PREFIX = "bk_"
MAX_KEY = 128  # characters
_HASHED_AS = "sha256:"
_NAME = re.compile(r"[A-Za-z0-9]([-._@A-Za-z0-9]{0,126}[A-Za-z0-9])?")
_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_FIELDS = frozenset({"name", "hash", "groups", "expires"})
_MAX_GROUPS = 256
_MAX_GROUP = 253  # characters


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """The stored data of a key, with its hash.

    Several entries may have one name while an old key is replaced.
    """

    name: str
    hash: str
    groups: frozenset[str] = frozenset()
    expires: datetime | None = None

    @property
    def id(self) -> str:
        """A short id for people: the beginning of the hash."""
        return self.hash.removeprefix(_HASHED_AS)[:12]

    def expired(self, now: datetime) -> bool:
        """Return True if the key has expired."""
        return self.expires is not None and self.expires <= now

    def line(self) -> str:
        """Return the entry as a line of JSON, as stored."""
        document: dict[str, object] = {"name": self.name, "hash": self.hash}
        if self.groups:
            document["groups"] = sorted(self.groups)
        if self.expires is not None:
            document["expires"] = self.expires.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return orjson.dumps(document).decode()


@dataclass(frozen=True, slots=True)
class BadLine:
    """An invalid line: its number, from 1, and the problem, never its text."""

    number: int
    message: str


def new_key() -> str:
    """Return a new key: `bk_` and 32 random bytes in URL-safe Base64."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_of(key: str) -> str:
    """Return the stored hash of a key."""
    return _HASHED_AS + hashlib.sha256(key.encode()).hexdigest()


def new_entry(key: str, name: str, groups: Iterable[str] = (), expires: datetime | None = None) -> KeyEntry:
    """Return the stored data of a new key.

    Raises `ValueError` for a name, group or time that cannot be used.
    """
    return KeyEntry(_name(name), hash_of(key), _groups(list(groups)), _aware(expires))


def read_lines(text: str) -> tuple[list[KeyEntry], list[BadLine]]:
    """Read keys, one JSON object per line.

    Empty lines and lines that begin with `#` are skipped. A bad line does not affect the other keys.
    """
    entries: list[KeyEntry] = []
    bad: list[BadLine] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            entries.append(_read(orjson.loads(line)))
        except orjson.JSONDecodeError:
            bad.append(BadLine(number, "no JSON object; write a line as `beckon keys new` prints it"))
        except ValueError as error:
            bad.append(BadLine(number, str(error)))
    return entries, bad


def _read(document: object) -> KeyEntry:
    if not isinstance(document, Mapping):
        raise ValueError("no JSON object; write a line as `beckon keys new` prints it")
    if unknown := sorted(set(document) - _FIELDS):
        # A key whose "expire" is passed over would live for ever.
        raise ValueError(f"unknown field {unknown[0][:40]!r}; the fields are {', '.join(sorted(_FIELDS))}")
    digest = document.get("hash")
    if not isinstance(digest, str) or not _HASH.fullmatch(digest):
        raise ValueError("hash must be sha256: and 64 hexadecimal digits in lower case")
    groups = document.get("groups")
    return KeyEntry(
        _name(document.get("name")),
        digest,
        _groups([] if groups is None else groups),
        _time(document.get("expires")),
    )


def _name(value: object) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError(
            "name must be 1 to 128 letters, digits and any of '-._@', a letter or digit first and last"
        )
    return value


def _groups(value: object) -> frozenset[str]:
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) > _MAX_GROUPS:
        raise ValueError(f"groups must be a list of at most {_MAX_GROUPS} names")
    for group in value:
        if not isinstance(group, str) or not 0 < len(group) <= _MAX_GROUP or not group.isprintable():
            raise ValueError(f"a group must be 1 to {_MAX_GROUP} printable characters")
    return frozenset(value)


def _time(value: object) -> datetime | None:
    if value is None:
        return None
    try:
        return _aware(datetime.fromisoformat(str(value)))
    except ValueError:
        raise ValueError('expires must be a time with its zone, such as "2027-01-31T00:00:00Z"') from None


def _aware(value: datetime | None) -> datetime | None:
    if value is not None and value.tzinfo is None:
        raise ValueError("a time needs its zone")
    return value
