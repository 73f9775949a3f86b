"""The number of deliveries of a call, in its reply.

An extension attribute of the reply gives it if the call was delivered more than once.

Brokers deliver at least once. They retry after a 5xx and after a missing answer, and report it to no one:
only the tool sees each delivery. It reports the deliveries that it has seen itself.
"""

from collections.abc import Mapping

DELIVERIES = "beckondeliveries"

_MOST = 2**31 - 1  # CloudEvents' Integer


def deliveries_attribute(deliveries: int) -> dict[str, str | int | bool]:
    """Return the extension attributes for several deliveries, none for a single one."""
    return {DELIVERIES: min(deliveries, _MOST)} if deliveries > 1 else {}


def read_deliveries(attributes: Mapping[str, object]) -> int | None:
    """Return the number of deliveries of a reply's call.

    The result is `None` if the attributes of the reply do not say it.

    In the binary mode of HTTP an Integer comes as its digits.
    """
    value = attributes.get(DELIVERIES)
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not (text.isascii() and text.isdecimal()) or len(text) > len(str(_MOST)):
        return None
    number = int(text)
    return number if 1 < number <= _MOST else None
