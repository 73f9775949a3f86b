"""The meaning of a subscriber's HTTP answer; pure.

The status decides first (knative/specs eventing/data-plane.md): 2xx is success, 404, 408, 409,
429 and 5xx are tried again, the rest is not. Then, of a 2xx answer:

- a CloudEvent in either mode is a reply. The specification takes none from a 202; the
  multi-tenant and the Kafka broker both do, and what works here must work there.
- an empty body ends the delivery.
- anything else is a failure that is not tried again but dead-lettered at once, as the Kafka
  broker does: the subscriber has done its work, and the multi-tenant broker's way (502, tried
  again) makes it do the work eleven times over.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from beckon_contract.cloudevents.events import CloudEvent, EventError, from_http, is_event
from beckon_contract.knative.delivery import is_retriable

_UNRECOGNISED = 502
_DELAYING = frozenset({429, 503})


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer; `complete` is false for a body cut at the limit."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""
    complete: bool = True

    def header(self, name: str) -> str:
        """Return the value of a header, or the empty string."""
        wanted = name.lower().encode()
        return next((value.decode("latin-1") for key, value in self.headers if key.lower() == wanted), "")


@dataclass(frozen=True, slots=True)
class Setback:
    """A failed attempt: code and data for a dead letter, and retriability.

    `retry_after` is the delay requested by the subscriber, in seconds, 0 without such a request.
    """

    code: int
    data: bytes
    retriable: bool
    retry_after: float = 0.0


def read_answer(answer: Answer) -> CloudEvent | Setback | None:
    """Return the reply in a subscriber's answer, or the failure.

    `None` is a success without a reply.
    """
    if not 200 <= answer.status < 300:
        return _refused(answer)
    if not answer.body and not is_event(answer.headers):
        return None
    if not answer.complete:
        return _unusable(answer, f"its body exceeds the limit of {len(answer.body)} bytes")
    if answer.header("content-encoding").lower() not in {"", "identity"}:
        return _unusable(answer, "its body is compressed, which was not asked for")
    if not is_event(answer.headers):
        return _unusable(answer, "its body is not a CloudEvent; answer with one or with an empty body")
    try:
        return from_http(answer.headers, answer.body, relayed=True)
    except EventError as error:
        return _unusable(answer, str(error))


def read_dead_letter_answer(answer: Answer) -> Setback | None:
    """Return the failure in a dead-letter sink's answer, or `None`.

    A reply of the sink is dropped.
    """
    return None if 200 <= answer.status < 300 else _refused(answer)


def _refused(answer: Answer) -> Setback:
    delay = _seconds(answer.header("retry-after")) if answer.status in _DELAYING else 0.0
    return Setback(answer.status, answer.body, is_retriable(answer.status), delay)


def _unusable(answer: Answer, why: str) -> Setback:
    message = f"the answer {answer.status} cannot be used as a reply: {why}"
    return Setback(_UNRECOGNISED, message.encode(), retriable=False)


def _seconds(value: str) -> float:
    """Return the seconds of a Retry-After header, a number or a date.

    Any other value gives 0.
    """
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return 0.0
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())
