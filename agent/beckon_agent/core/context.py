"""Context variables of the request that a task serves: its id, its principal, its owner."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

from starlette.requests import Request

_current_request_id: ContextVar[str] = ContextVar("request_id", default="-")


def request_id() -> str:
    """Return the id of this task's request, "-" where there is none."""
    return _current_request_id.get()


def set_request_id(value: str) -> None:
    """Say which request this task, and every task that it starts, works for."""
    _current_request_id.set(value)


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
UNAUTHENTICATED = Principal("", frozenset(), "nobody")
EVENTS = Principal("event:broker", frozenset({"beckon:events"}), "event")
"""Brokers deliver events with no word of who sent them; rules name them by this group."""

_MEMBER = "principal"

_current_principal: ContextVar[Principal] = ContextVar("principal")


def current_principal() -> Principal:
    """Return whom this task works for; raise `NoPrincipal` where nobody has said so."""
    try:
        return _current_principal.get()
    except LookupError:
        raise NoPrincipal("no principal: let faces.access.Access, or acting_as, say who asks") from None


@contextmanager
def acting_as(who: Principal) -> Iterator[None]:
    """Work for a principal: this task, and every task that it starts in the meantime."""
    token = _current_principal.set(who)
    try:
        yield
    finally:
        _current_principal.reset(token)


def principal_to_request() -> dict[str, object]:
    """Return the current principal as a member of a run's `request`, nothing where none was said."""
    who = _current_principal.get(None)
    return {} if who is None else {_MEMBER: who.document()}


def principal_of(request: Mapping[str, object]) -> Principal:
    """Return the principal that a run of this `request` works for; without one it is nobody."""
    document = request.get(_MEMBER)
    return read_principal(document) if isinstance(document, Mapping) else UNAUTHENTICATED


def read_principal(document: Mapping[str, object]) -> Principal:
    """Return the principal that `Principal.document` wrote; what cannot be read is nobody."""
    who, groups = document.get("id"), document.get("groups")
    if not isinstance(who, str) or not isinstance(groups, list):
        return UNAUTHENTICATED
    named = frozenset(group for group in groups if isinstance(group, str))
    match document.get("kind"):
        case "key" | "oidc" | "event" as kind if who:
            return Principal(who, named, kind)
        case "anonymous":
            return ANONYMOUS
        case _:
            return UNAUTHENTICATED


def owner_of(request: Request) -> str:
    """Return the id of who asks, as the door noted it; empty for anonymous callers."""
    who: Principal = getattr(request.state, "principal", UNAUTHENTICATED)
    return who.id
