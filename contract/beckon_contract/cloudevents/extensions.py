"""Extension attributes, headers and media types of calls and replies.

An accepted call is answered later. Acceptance is an attribute of the call's first reply.

The last reply of the call is an ordinary one, sent to the Broker when it is ready. It bears the same
correlation as the first, and names the call in `CAUSE` (CloudEvents correlation extension).

Agents count nested calls with `DEPTH` and `BUDGET`; tools copy `CARRIED` to their replies, for a reply may
start an agent again.

Brokers deliver at least once. They retry after a 5xx and after a missing answer, and report it to no one:
only the tool sees each delivery. It reports the deliveries that it has seen itself.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime

STATE = "beckonstate"
ACCEPTED = "accepted"
"""The value of `STATE` by which a reply is no answer yet."""

INPUT_REQUIRED = "input_required"
"""The value of `STATE` by which a reply requests input of a person, see `beckon_contract.inputs`."""

INPUT = "beckoninput"
"""On a call: a person's answer to the form that its tool has replied with, as JSON text."""

PROGRESS = "progress"
"""The value of `STATE` on a progress report. Such an event has no reply attribute."""

PROGRESS_MARK = "beckonprogress"
"""On a report of progress: the token of the call, by which the report finds who waits for the answer.

Not the reply attribute, for then a report would be taken for the answer; nor that of the call, for then
a report that cannot be delivered would be taken for the call.
"""

FIRST_REPORTS = 3
"""So many reports of progress of a call are sent at once; from then on each sender paces them."""

CAUSE = "causationid"
"""On a reply, and on a report of progress: the id of the call."""


def is_report(extensions: Mapping[str, object]) -> bool:
    """Return True if these extension attributes mark a progress report."""
    return extensions.get(STATE) == PROGRESS


def is_acceptance(extensions: Mapping[str, object]) -> bool:
    """Return True if these extension attributes mark a reply as acceptance. The answer comes later."""
    return extensions.get(STATE) == ACCEPTED


DEPTH = "beckondepth"
"""The number of agents before the receiver of the event."""

BUDGET = "beckonbudget"
"""The tokens that are left for the receiver of the event and all its calls."""

USED = "beckonused"
"""On a reply: the tokens that it cost."""

CARRIED = (DEPTH, BUDGET)


NOT_BEGUN = "beckonnotbegun"
"""On a dead letter: `true` if no attempt to deliver the event can have begun the work.

A Knative Broker reports its last attempt alone, which says nothing about the ones before.
"""

OBSERVER = "beckonobserver"
"""On a dead letter: `true` if its Trigger only observes the call, and another one's subscriber answers it.

Its failure says nothing about the call.
"""

REPLY_ANY = "beckonreply"
"""On a call: `any` if every successful answer of its tool is the reply, a CloudEvent or not.

Written by the shim, read by a broker that sees the answer: plain JSON and text become the data of a reply,
and an answer without a body (202, 204) becomes a reply without data.
"""

ANY = "any"
"""The value of `REPLY_ANY`."""

IDEMPOTENT_CALL = "beckonidempotent"
"""On a call: `true` if a second delivery does no harm.

Written by the shim, read by a broker that delivers the call again.
"""

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
    return parse_timestamp(text).timestamp()


def parse_timestamp(text: str) -> datetime:
    """Return an RFC 3339 timestamp as a time; a leap second is the second before it.

    Raises `ValueError` for a text that is no time, or has no zone.
    """
    moment = datetime.fromisoformat(text.upper().replace(":60", ":59"))
    if moment.tzinfo is None:
        raise ValueError("it has no zone")
    return moment


# RFC 3339, section 5.6; a leap second is a second.
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?"
    r"(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)\Z",
    re.ASCII,
)


def is_timestamp(text: str) -> bool:
    """Return True for an RFC 3339 timestamp of a calendar day."""
    parts = _TIMESTAMP.match(text)
    if parts is None:
        return False
    try:
        date(int(parts[1]), int(parts[2]), int(parts[3]))
    except ValueError:
        return False
    return True


def format_expiry(epoch: float) -> bytes:
    """Return seconds since the epoch as an RFC 3339 timestamp with milliseconds."""
    moment = datetime.fromtimestamp(epoch, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z").encode()


_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
# No character beyond Latin-1: a header cannot hold it (RFC 9110, 5.6.4), and the event could not be sent on.
_QUOTED = r'"(?:[\t !#-\[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*"'
_MEDIA_TYPE = re.compile(
    rf"{_WORD}(?P<subtype>/{_WORD})?(?:[ \t]*;[ \t]*{_WORD}=(?:{_WORD}|{_QUOTED}))*[ \t]*;?[ \t]*\Z"
)


def is_media_type(text: str | None, *, subtype: bool = True) -> bool:
    """Return True if a text is a media type.

    No text at all means JSON.

    Without `subtype` it needs no slash: Go's mime package, and with it Knative's ingress, takes one word.
    """
    if text in (None, "application/json"):
        return True
    match = _MEDIA_TYPE.match(str(text))
    return match is not None and not (subtype and match["subtype"] is None)


def is_json(content_type: str | None) -> bool:
    """Return True if data of this type is JSON. An absent type means JSON (JSON format, section 3.1)."""
    if content_type is None:
        return True
    media_type = content_type.split(";", maxsplit=1)[0].strip().lower()
    return media_type.endswith(("/json", "+json"))


def to_text(value: str | int) -> str:
    """Return the value of an attribute as text in its canonical form (CloudEvents 1.0, type system)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
