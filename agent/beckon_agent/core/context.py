"""Context variables of a task's request: id, principal, owner."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

from starlette.requests import Request

_current_request_id: ContextVar[str] = ContextVar("request_id", default="-")


def request_id() -> str:
    """Return the id of this task's request, or "-" without one."""
    return _current_request_id.get()


def set_request_id(value: str) -> None:
    """Set the request id of this task and of all tasks it starts."""
    _current_request_id.set(value)


Kind = Literal["key", "oidc", "event", "anonymous", "unauthenticated"]


class NoPrincipal(RuntimeError):
    """A decision needs a principal, and none was set. This is a mistake in the wiring, never an answer."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller of a request.

    `id` is `key:` and the name of an API key, or `oidc:` and the subject of a token, so that neither can pass
    for the other; empty for anonymous callers. The kind `event` is any sender of an event through a Broker,
    and `unauthenticated` a caller without access.
    """

    id: str
    groups: frozenset[str]
    kind: Kind

    def to_document(self) -> dict[str, object]:
        """Return the principal as a JSON object, for a run's `request`."""
        return {"id": self.id, "groups": sorted(self.groups), "kind": self.kind}


ANONYMOUS = Principal("", frozenset(), "anonymous")
UNAUTHENTICATED = Principal("", frozenset(), "unauthenticated")
EVENTS = Principal("event:broker", frozenset({"beckon:events"}), "event")
"""Brokers deliver events with no word of who sent them; rules name them by this group."""

_MEMBER = "principal"

_current_principal: ContextVar[Principal] = ContextVar("principal")


def current_principal() -> Principal:
    """Return the principal of this task; raises `NoPrincipal` without one."""
    try:
        return _current_principal.get()
    except LookupError:
        raise NoPrincipal("no principal: set one by api.access.AuthMiddleware or acting_as") from None


@contextmanager
def acting_as(who: Principal) -> Iterator[None]:
    """Set the principal of this task, and of tasks started meanwhile."""
    token = _current_principal.set(who)
    try:
        yield
    finally:
        _current_principal.reset(token)


def principal_to_request() -> dict[str, object]:
    """Return the current principal as a member of a run's `request`.

    The mapping is empty without a principal.
    """
    who = _current_principal.get(None)
    return {} if who is None else {_MEMBER: who.to_document()}


def principal_of(request: Mapping[str, object]) -> Principal:
    """Return the principal of a run with this `request`. Without one it is `UNAUTHENTICATED`."""
    document = request.get(_MEMBER)
    return read_principal(document) if isinstance(document, Mapping) else UNAUTHENTICATED


def read_principal(document: Mapping[str, object]) -> Principal:
    """Return the principal written by `Principal.document`.

    It is `UNAUTHENTICATED` if the document cannot be read.
    """
    who, groups = document.get("id"), document.get("groups")
    if not isinstance(who, str) or not isinstance(groups, list):
        return UNAUTHENTICATED
    names = frozenset(group for group in groups if isinstance(group, str))
    match document.get("kind"):
        case "key" | "oidc" | "event" as kind if who:
            return Principal(who, names, kind)
        case "anonymous":
            return ANONYMOUS
        case _:
            return UNAUTHENTICATED


def owner_of(request: Request) -> str:
    """Return the id of the request's principal, as set by access control.

    It is empty for anonymous callers.
    """
    who: Principal = getattr(request.state, "principal", UNAUTHENTICATED)
    return who.id
