"""Whether a call has expired: its `expirytime` extension (RFC 3339) says when nobody waits any more."""

from datetime import UTC, datetime

from beckon_contract.events import CloudEvent, EventError

EXPIRY = "expirytime"


def has_expired(call: CloudEvent, now: datetime) -> bool:
    """Whether `expirytime` has passed; raise `EventError` where it is no time with a zone."""
    expires = read_expiry(call)
    return expires is not None and expires <= now


def seconds_left(call: CloudEvent) -> float | None:
    """Return how long the call is still waited for, `None` for ever; raises `EventError` likewise."""
    expires = read_expiry(call)
    return None if expires is None else (expires - datetime.now(UTC)).total_seconds()


def read_expiry(call: CloudEvent) -> datetime | None:
    """Return when the call expires, `None` for never; raises `EventError` likewise."""
    written = call.extensions.get(EXPIRY)
    if written is None:
        return None
    try:
        expires = datetime.fromisoformat(str(written).upper())
    except ValueError:
        expires = None
    if expires is None or expires.tzinfo is None:
        raise EventError(f"the attribute expirytime {written!r} is no RFC 3339 time with a zone")
    return expires
