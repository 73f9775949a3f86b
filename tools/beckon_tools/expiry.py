"""The expiry of a call: its `expirytime` extension (RFC 3339).

After that time no caller waits for the answer.
"""

from datetime import UTC, datetime

from beckon_contract.cloudevents.events import CloudEvent, EventError
from beckon_contract.cloudevents.extensions import parse_timestamp

EXPIRY = "expirytime"


def has_expired(call: CloudEvent, now: datetime) -> bool:
    """Return True if `expirytime` has passed; raise `EventError`.

    The error is for a value that is not a time with a zone.
    """
    expires = read_expiry(call)
    return expires is not None and expires <= now


def seconds_left(call: CloudEvent) -> float | None:
    """Return the seconds until the call expires, `None` for never.

    Raises `EventError` as `has_expired` does.
    """
    expires = read_expiry(call)
    return None if expires is None else (expires - datetime.now(UTC)).total_seconds()


def read_expiry(call: CloudEvent) -> datetime | None:
    """Return the expiry time of the call, `None` for never. Raises `EventError` as `has_expired` does."""
    written = call.extensions.get(EXPIRY)
    if written is None:
        return None
    try:
        return parse_timestamp(str(written))
    except ValueError:
        raise EventError(f"the attribute expirytime {written!r} is no RFC 3339 time with a zone") from None
