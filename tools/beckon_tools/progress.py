"""Progress of running calls, as events.

They are for the caller that waits, and for Triggers of others.
"""

import logging
import time
from dataclasses import replace
from datetime import UTC, datetime

import orjson

from beckon_contract.cloudevents.events import AttributeValue, CloudEvent
from beckon_contract.cloudevents.extensions import CAUSE, FIRST_REPORTS, PROGRESS, PROGRESS_MARK, STATE
from beckon_tools.errors import NotSent
from beckon_tools.outbox import has_sink, send_event
from beckon_tools.settings import Settings

logger = logging.getLogger(__name__)

_CARRIED = (CAUSE, "traceparent", "tracestate")
_SECONDS = 2.0  # for the Broker to take a report: the work waits so long at most


class Progress:
    """Reports the progress of one call.

    An async function receives it by a parameter of this type. Reports go to the Broker at `K_SINK`. They
    are optional: one that is not accepted is not sent again, and without a Broker none is sent.
    """

    def __init__(self, event: CloudEvent, every: float) -> None:
        self._event = event
        self._every = every
        self._number = 0
        self._next = 0.0

    @classmethod
    def of(cls, reply: CloudEvent, call_type: str, settings: Settings) -> "Progress":
        """Return the progress of a call, from a reply to it."""
        token = reply.extensions.get(settings.reply_attribute)
        return cls(report_event(reply, call_type, token), settings.progress_seconds)

    async def report(self, done: float, total: float | None = None, message: str = "") -> None:
        """Report progress: `done` of `total`, in any unit.

        `total` is `None` if it is unknown. The first three reports are sent at once. Later ones that come
        faster than the setting allows are left out, but not one with `done` at `total`.
        """
        if not has_sink() or not self._is_due(ends=total is not None and done >= total):
            return
        self._number += 1
        await send_report(self._event, str(self._number), report_data(done, total, message))

    def _is_due(self, *, ends: bool) -> bool:
        now = time.monotonic()
        if self._number >= FIRST_REPORTS and now < self._next and not ends:
            return False
        self._next = now + self._every
        return True


def report_event(reply: CloudEvent, call_type: str, token: AttributeValue | None) -> CloudEvent:
    """Return the constant part of a call's reports, from a reply to it.

    It has no reply attribute, so that it is not taken for the answer: the token that a reply returns
    there is in an attribute of its own.
    """
    carried = {name: value for name, value in reply.extensions.items() if name in _CARRIED}
    if token is not None:
        carried[PROGRESS_MARK] = token
    return replace(
        reply,
        type=f"{call_type}.progress",
        datacontenttype="application/json",
        extensions={**carried, STATE: PROGRESS},
    )


def report_data(done: float, total: float | None, message: str) -> bytes:
    """Return the JSON data of a report. The message is cut to 500 characters."""
    data: dict[str, object] = {"progress": done}
    if total is not None:
        data["total"] = total
    if message:
        data["message"] = message[:500]
    return orjson.dumps(data)


async def send_report(event: CloudEvent, number: str, data: bytes, *, sink: str = "") -> None:
    """Send a report once; `number` is unique among those of its call."""
    call = event.extensions[CAUSE]
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    report = replace(event, id=f"{call}.progress.{number}", time=now, data=data)
    try:
        await send_event(report, "report of progress", sink=sink, seconds=_SECONDS, tries=0)
    except NotSent as error:
        logger.warning("progress of call %s: %s", call, error)
