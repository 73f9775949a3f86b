"""The principal that a request is served for, and its way through the tasks that serve it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

Kind = Literal["key", "oidc", "event", "anonymous", "nobody"]


class NoPrincipal(RuntimeError):
    """A decision was asked for, and nobody has said for whom: a mistake in the wiring, never an answer."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks.

    `id` is `key:` and the name of an API key, or `oidc:` and the subject of a token, so that neither
    can pass for the other; empty for anonymous callers. `event` is whatever sent an event through a
    Broker, and `nobody` a caller who was not let in.
    """

    id: str
    groups: frozenset[str]
    kind: Kind

    def document(self) -> dict[str, object]:
        """Return it as JSON, to be kept with a run."""
        return {"id": self.id, "groups": sorted(self.groups), "kind": self.kind}


ANONYMOUS = Principal("", frozenset(), "anonymous")
NOBODY = Principal("", frozenset(), "nobody")
EVENTS = Principal("event:broker", frozenset({"beckon:events"}), "event")
"""Brokers deliver events with no word of who sent them; rules name them by this group."""

_MEMBER = "principal"

_current: ContextVar[Principal] = ContextVar("principal")


def principal() -> Principal:
    """Return whom this task works for; raise `NoPrincipal` where nobody has said so."""
    try:
        return _current.get()
    except LookupError:
        raise NoPrincipal("no principal: let faces.access.Access, or acting_as, say who asks") from None


@contextmanager
def acting_as(who: Principal) -> Iterator[None]:
    """Work for a principal: this task, and every task that it starts in the meantime."""
    token = _current.set(who)
    try:
        yield
    finally:
        _current.reset(token)


def to_keep() -> dict[str, object]:
    """Return the current principal as a member of a run's `request`, nothing where none was said."""
    who = _current.get(None)
    return {} if who is None else {_MEMBER: who.document()}


def kept(request: Mapping[str, object]) -> Principal:
    """Return the principal that a run of this `request` works for; without one it is nobody."""
    document = request.get(_MEMBER)
    return read_principal(document) if isinstance(document, Mapping) else NOBODY


def read_principal(document: Mapping[str, object]) -> Principal:
    """Return the principal that `Principal.document` wrote; what cannot be read is nobody."""
    who, groups = document.get("id"), document.get("groups")
    if not isinstance(who, str) or not isinstance(groups, list):
        return NOBODY
    named = frozenset(group for group in groups if isinstance(group, str))
    match document.get("kind"):
        case "key" | "oidc" | "event" as kind if who:
            return Principal(who, named, kind)
        case "anonymous":
            return ANONYMOUS
        case _:
            return NOBODY
