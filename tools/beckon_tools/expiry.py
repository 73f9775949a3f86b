"""Whether a call has expired: its `expirytime` extension (RFC 3339) says when nobody waits any more."""

from datetime import datetime

from beckon_contract.events import CloudEvent, EventError


def has_expired(call: CloudEvent, now: datetime) -> bool:
    """Whether `expirytime` has passed; raise `EventError` where it is no time with a zone."""
    written = call.extensions.get("expirytime")
    if written is None:
        return False
    try:
        expires = datetime.fromisoformat(str(written).upper())
    except ValueError:
        expires = None
    if expires is None or expires.tzinfo is None:
        raise EventError(f"the attribute expirytime {written!r} is no RFC 3339 time with a zone")
    return expires <= now
