"""How an event is delivered: Knative's DeliverySpec, its durations and its destinations.

Written against knative/eventing pkg/apis/duck/v1/delivery_types.go and
pkg/kncloudevents/retries.go, and knative/pkg apis/duck/v1/destination.go.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args
from urllib.parse import urlsplit

from beckon_contract.fields import Fields

BackoffPolicy = Literal["linear", "exponential"]
Format = Literal["json", "binary"]
T = TypeVar("T", bound=str)

MAX_DELAY = 86_400.0  # a day; the Go brokers overflow beyond, and no caller waits so long
MAX_RETRY = 2**31 - 1

_POLICIES: tuple[BackoffPolicy, ...] = get_args(BackoffPolicy)
_FORMATS: tuple[Format, ...] = get_args(Format)
_RETRIED = frozenset({404, 408, 409, 429})
_NUMBER = r"\d{1,9}(?:[.,]\d{1,9})?"
_DURATION = re.compile(
    rf"P(?=.)(?:({_NUMBER})W)?(?:({_NUMBER})D)?(?:T(?=.)(?:({_NUMBER})H)?(?:({_NUMBER})M)?(?:({_NUMBER})S)?)?",
    re.ASCII,
)
_SECONDS = (604_800, 86_400, 3_600, 60, 1)
_DELIVERY_FIELDS = (
    "backoffDelay",
    "backoffPolicy",
    "deadLetterSink",
    "format",
    "retry",
    "retryAfterMax",
    "timeout",
)


_DESTINATION_FIELDS = ("CACerts", "audience", "ref", "uri")
REFERENCE_FIELDS = ("apiVersion", "kind", "name", "namespace")


@dataclass(frozen=True, slots=True)
class Reference:
    """A Kubernetes object as a target of events."""

    api_version: str
    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Destination:
    """A target of events: an object or a URI. A URI is absolute, or relative to the object's address."""

    ref: Reference | None = None
    uri: str | None = None
    ca_certs: str | None = None
    audience: str | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """How to deliver to one subscriber; all times are seconds, an absent time-out means none.

    `retry` counts the attempts after the first. `retry_after_max` is `None` where the
    Retry-After header is ignored.
    """

    retry: int = 0
    backoff_policy: BackoffPolicy | None = None
    backoff_delay: float = 0.0
    timeout: float | None = None
    dead_letter: Destination | None = None
    retry_after_max: float | None = None
    format: Format | None = None

    def delay(self, attempt: int, retry_after: float = 0.0) -> float:
        """Return the seconds to wait before a retry; `attempt` counts retries from 0.

        The first linear retry therefore comes at once, as in the Go brokers. `retry_after` is the delay
        requested by a 429 or 503 response: it counts up to `retry_after_max`, if that is longer.
        """
        configured = min(retry_after, self.retry_after_max or 0.0)
        return min(max(configured, self._backoff(attempt)), MAX_DELAY)

    def _backoff(self, attempt: int) -> float:
        if self.backoff_policy == "linear":
            return self.backoff_delay * attempt
        if self.backoff_policy == "exponential":
            return self.backoff_delay * float(2 ** min(attempt, 62))
        return 0.0


# What a Broker gets that says nothing of delivery (ConfigMap config-br-defaults).
DEFAULT_DELIVERY = Delivery(retry=10, backoff_policy="exponential", backoff_delay=0.2)


NEVER_ACCEPTED = frozenset({400, 405, 410, 413, 414, 415, 422, 431})
"""A Broker with such a status will not accept this event later either; any other failure may pass."""


def is_retriable(status: int | None) -> bool:
    """Return True if a delivery with this HTTP status is retried. `None` means that there was no response."""
    return status is None or status >= 500 or status in _RETRIED


def parse_duration(text: str) -> float:
    """Return the seconds of an ISO 8601 duration of weeks, days, hours, minutes and seconds.

    Raises `ValueError` for anything else; years and months have no fixed length.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:40]!r} is no ISO 8601 duration; write PT0.2S, PT30S, PT5M or PT1H30M")
    amounts = (float(amount.replace(",", ".")) if amount else 0.0 for amount in match.groups())
    return sum(amount * unit for amount, unit in zip(amounts, _SECONDS, strict=True))


def read_delivery(fields: Fields, namespace: str) -> Delivery:
    """Read a delivery spec and note its mistakes in the report of the fields."""
    fields.refuse_unknown(_DELIVERY_FIELDS)
    for name, other in (("backoffPolicy", "backoffDelay"), ("backoffDelay", "backoffPolicy")):
        if fields.values.get(name) is not None and fields.values.get(other) is None:
            fields.warn(name, f"has no effect without {other}: retries follow at once; set both")
    if fields.values.get("retryAfterMax") is not None:
        fields.warn(
            "retryAfterMax", "is refused by a cluster that has not enabled the feature delivery-retryafter"
        )
    timeout = _seconds(fields, "timeout")
    if timeout == 0:
        fields.problem("timeout", "must be longer than zero; leave it out for no time-out")
    sink = fields.child("deadLetterSink")
    policy, delay = _choice(fields, "backoffPolicy", _POLICIES), _seconds(fields, "backoffDelay")
    return Delivery(
        retry=_retry(fields),
        backoff_policy=policy if delay is not None else None,
        backoff_delay=delay or 0.0,
        timeout=timeout,
        dead_letter=read_destination(sink, namespace) if sink else None,
        retry_after_max=_seconds(fields, "retryAfterMax"),
        format=_choice(fields, "format", _FORMATS),
    )


def read_destination(fields: Fields, namespace: str) -> Destination:
    """Read a destination and note its mistakes in the report of the fields."""
    fields.refuse_unknown(_DESTINATION_FIELDS)
    ref, uri = fields.child("ref"), fields.text("uri")
    if fields.values.get("ref") is None and not fields.values.get("uri"):
        fields.problem(
            "ref", f"name the object that receives the events here, or its address in {fields.at('uri')}"
        )
    if uri:
        _check_uri(fields, uri, has_ref=ref is not None)
    return Destination(
        ref=read_reference(ref, namespace) if ref else None,
        uri=uri or None,
        ca_certs=fields.text("CACerts"),
        audience=fields.text("audience"),
    )


def read_reference(fields: Fields, namespace: str) -> Reference:
    """Read a reference made by an object in this namespace and note its mistakes in the report."""
    fields.refuse_unknown(REFERENCE_FIELDS)
    texts = {name: fields.text(name) or "" for name in ("apiVersion", "kind", "name")}
    for name, value in texts.items():
        if not value and not fields.values.get(name):
            fields.problem(name, "missing; a reference needs apiVersion, kind and name")
    return Reference(
        api_version=texts["apiVersion"],
        kind=texts["kind"],
        namespace=fields.text("namespace") or namespace,
        name=texts["name"],
    )


def _check_uri(fields: Fields, uri: str, *, has_ref: bool) -> None:
    try:
        parts = urlsplit(uri)
    except ValueError as error:
        fields.problem("uri", f"is no URI: {error}")
        return
    if has_ref and parts.scheme:
        fields.problem(
            "uri", f"an absolute URI and {fields.at('ref')} exclude each other; write a path or drop ref"
        )
    if not has_ref and not (parts.scheme and parts.netloc):
        fields.problem("uri", f"a relative URI needs {fields.at('ref')}; write http://HOST/PATH or add ref")


def _retry(fields: Fields) -> int:
    retry = fields.integer("retry")
    if retry is not None and not 0 <= retry <= MAX_RETRY:
        fields.problem("retry", f"must be from 0 to {MAX_RETRY}, not {retry}")
        return 0
    return retry or 0


def _seconds(fields: Fields, name: str) -> float | None:
    text = fields.text(name)
    if text is None:
        return None
    try:
        return parse_duration(text)
    except ValueError as error:
        fields.problem(name, str(error))
        return None


def _choice(fields: Fields, name: str, choices: Sequence[T]) -> T | None:
    text = fields.text(name)
    if text is None:
        return None
    for choice in choices:
        if text == choice:
            return choice
    fields.problem(name, f"must be {' or '.join(choices)}, not {text!r}")
    return None
