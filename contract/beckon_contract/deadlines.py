"""How long senders wait: `Prefer: wait=`, `respond-async`, `expirytime`."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime

_WAIT = re.compile(rb'wait\s*=\s*"?(\d{1,9}(?:\.\d{1,9})?)"?\Z', re.IGNORECASE)


def preferred_wait(headers: Iterable[tuple[bytes, bytes]]) -> float | None:
    """Return the seconds in `Prefer: wait=` (RFC 7240, section 4.3), decimals allowed.

    The first one counts; one that cannot be read is ignored, as section 2 asks.
    """
    for name, value in headers:
        if name == b"prefer":
            for preference in value.split(b","):
                wait = _WAIT.match(preference.split(b";", maxsplit=1)[0].strip())
                if wait is not None:
                    return float(wait[1])
    return None


def prefers_async(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return True for `Prefer: respond-async` (RFC 7240, section 4.1).

    The sender then takes the answer later.
    """
    return any(
        preference.split(b";", maxsplit=1)[0].strip().lower() == b"respond-async"
        for name, value in headers
        if name == b"prefer"
        for preference in value.split(b",")
    )


def parse_expiry(text: str) -> float:
    """Return a checked RFC 3339 timestamp as seconds since the epoch."""
    whole, _, rest = text.upper().partition(".")
    fraction = re.match(r"\d*", rest)
    if fraction is not None and rest:
        whole += rest[fraction.end() :]
    moment = datetime.fromisoformat(whole.replace(":60", ":59"))
    return moment.timestamp() + (float(f"0.{fraction[0]}") if fraction is not None and fraction[0] else 0.0)


def format_expiry(epoch: float) -> bytes:
    """Return seconds since the epoch as an RFC 3339 timestamp with milliseconds."""
    moment = datetime.fromtimestamp(epoch, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z").encode()
