"""Events sent to the Broker: late answers and progress.

They are not the reply to a request.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from beckon_contract.cloudevents.events import CloudEvent, to_binary
from beckon_tools.errors import NotSent

SINK = "K_SINK"
"""The environment variable with the Broker's address: what a SinkBinding of Knative sets."""

Receiver = Callable[[CloudEvent], None]

_receivers: list[Receiver] = []


def has_sink() -> bool:
    """Return True if there is a Broker, or a receiver in tests."""
    return bool(_receivers or os.environ.get(SINK))


async def send_event(
    event: CloudEvent, what: str, *, sink: str = "", seconds: float = 30, tries: int = 3
) -> None:
    """Send an event to the Broker at `sink`, or at `K_SINK`.

    `what` names the event in errors. Raises `NotSent` if the Broker has not accepted it.
    """
    if _receivers and not sink:
        _receivers[-1](event)
        return
    address = sink or os.environ.get(SINK, "")
    if not address:
        raise NotSent(f"where is the Broker? Set {SINK} to its address, as a SinkBinding does")
    import httpx  # noqa: PLC0415  # a fifth of a second, for tools that send what is no reply

    headers, body = to_binary(event)
    try:
        transport = httpx.AsyncHTTPTransport(retries=tries)
        async with httpx.AsyncClient(transport=transport, timeout=seconds) as client:
            answer = await client.post(address, content=body, headers=headers)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise NotSent(f"the Broker at {address} does not answer: {type(error).__name__}") from None
    if not answer.is_success:
        raise NotSent(
            f"the Broker at {address} did not take the {what}: {answer.status_code}",
            status=answer.status_code,
            retry_after=_parse_seconds(answer.headers.get("retry-after", "")),
        )


def _parse_seconds(text: str) -> float | None:
    """Return the seconds in `Retry-After`, `None` for anything else.

    The header may be a date, but no Broker sends one.
    """
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


@contextmanager
def taken_by(receiver: Receiver) -> Iterator[None]:
    """Hand every event of this process to `receiver` instead of a Broker, for tests without one."""
    _receivers.append(receiver)
    try:
        yield
    finally:
        _receivers.remove(receiver)
