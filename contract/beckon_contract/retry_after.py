"""The header `Retry-After` of an HTTP answer: seconds, or a date (RFC 9110, section 10.2.3)."""

import math
import time
from datetime import UTC
from email.utils import parsedate_to_datetime

LONGEST = 86_400.0
"""The longest wait in seconds. A server that wants a longer one is read as if it wanted this one."""


def read_retry_after(text: str, *, unit: float = 1.0) -> float | None:
    """Return the wait in seconds, between 0 and `LONGEST`; `None` without a value that can be read.

    A number counts `unit` seconds. Some servers write decimals, which the RFC does not allow. A date that is
    over is no wait.
    """
    try:
        seconds = float(text) * unit
    except ValueError:
        try:
            seconds = _seconds_until(text)
        except (ValueError, OverflowError):
            return None
    return None if math.isnan(seconds) else min(max(0.0, seconds), LONGEST)


def _seconds_until(text: str) -> float:
    date = parsedate_to_datetime(text)
    if date.tzinfo is None:  # the zone -0000
        date = date.replace(tzinfo=UTC)
    return date.timestamp() - time.time()
