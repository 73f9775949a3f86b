"""How a reply tells that its call came more than once: an attribute with the number of deliveries.

Brokers deliver at least once. They try again after a 5xx and after silence, and tell nobody of it: only
the tool sees each delivery. It tells of those that it has seen itself.
"""

from collections.abc import Mapping

DELIVERIES = "beckondeliveries"

_MOST = 2**31 - 1  # CloudEvents' Integer


def told(deliveries: int) -> dict[str, str | int | bool]:
    """Return the extension attributes that tell of so many deliveries; none of a single one."""
    return {DELIVERIES: min(deliveries, _MOST)} if deliveries > 1 else {}


def read_deliveries(attributes: Mapping[str, object]) -> int | None:
    """Return how often the call of a reply with these attributes was delivered, `None` where it does not say.

    In the binary mode of HTTP an Integer comes as its digits.
    """
    value = attributes.get(DELIVERIES)
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not (text.isascii() and text.isdecimal()) or len(text) > len(str(_MOST)):
        return None
    number = int(text)
    return number if 1 < number <= _MOST else None
