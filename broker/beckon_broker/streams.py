"""What is in a stream of JetStream: the messages of each subject, and the age of the oldest one.

The client library leaves out the time of a stream's first message, so the request is made here (NATS's
JetStream API, `$JS.API.STREAM.INFO`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson
from nats.aio.client import Client
from nats.errors import Error as NatsError

_ANSWER_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class StreamContent:
    """The number of messages of each subject, and the age of the oldest message in seconds, 0 without one.

    The server computes both, so the clock of this machine does not matter.
    """

    subjects: Mapping[str, int]
    oldest_seconds: float


async def read_stream_content(client: Client, stream: str, pattern: str) -> StreamContent:
    """Return the content of a stream, with the subjects of a pattern.

    Raises `NatsError` without a connection, without an answer, and if the server has no such stream.
    """
    request = orjson.dumps({"subjects_filter": pattern})
    answer = await client.request(f"$JS.API.STREAM.INFO.{stream}", request, timeout=_ANSWER_SECONDS)
    document: dict[str, Any] = orjson.loads(answer.data)
    if error := document.get("error"):
        raise NatsError(str(error.get("description") or error))
    state = document["state"]
    age = 0.0
    if state["messages"]:
        now = _parse_time(document["ts"]) if "ts" in document else datetime.now(UTC)
        age = max(0.0, (now - _parse_time(state["first_ts"])).total_seconds())
    return StreamContent(state.get("subjects") or {}, age)


def _parse_time(text: str) -> datetime:
    """Return the time in a text of RFC 3339; its nanoseconds are cut to microseconds."""
    return datetime.fromisoformat(text)
