"""What each side answers when there is no good reply; measured, not read."""

import asyncio
import time
from dataclasses import dataclass

import httpx
import orjson

from bench.requestreply.calls import headers
from bench.requestreply.topology import Side

_LONGEST_SECONDS = 90
_WAIT_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Case:
    """Something that goes wrong: the event's type, and how many calls with one and the same id."""

    title: str
    kind: str
    calls: int = 1


CASES = (
    Case(f"a time-out: the tool never replies (`prefer: wait={_WAIT_SECONDS}`)", "bench.silent"),
    Case("a dead letter: the tool answers 400", "bench.refused"),
    Case("a plain-JSON reply: 200, but no event", "bench.plain"),
    Case("a duplicate id: two calls at once, one id", "bench.slow", calls=2),
)


async def ask(side: Side, case: Case) -> str:
    """Return in words what the caller, or each of the callers, got and when."""
    # RequestReply gives up after 60 s, whatever the request says.
    async with httpx.AsyncClient(timeout=_LONGEST_SECONDS) as client:
        wait = _WAIT_SECONDS if case.kind == "bench.silent" else 30
        identity = f"{case.kind}-{time.time_ns()}"
        sent = headers(case.kind, wait=wait, identity=identity)
        url = f"http://{side.address}{side.shared}"
        answers = [_one(client, url, sent, number) for number in range(case.calls)]
        return "; ".join(await asyncio.gather(*answers))


async def _one(client: httpx.AsyncClient, url: str, sent: list[tuple[str, str]], number: int) -> str:
    began = time.perf_counter()
    body = b'{"call":%d}' % number
    try:
        answer = await client.post(url, headers=dict(sent), content=body)
    except httpx.HTTPError as error:
        return f"no answer ({type(error).__name__}) after {time.perf_counter() - began:.1f} s"
    return f"{_words(answer, body)} after {time.perf_counter() - began:.1f} s"


def _words(answer: httpx.Response, sent: bytes) -> str:
    if not answer.content:
        return f"{answer.status_code} with an empty body"
    if answer.content == sent:
        return f"{answer.status_code} with its own reply"
    try:
        document = orjson.loads(answer.content)
    except orjson.JSONDecodeError:
        return f"{answer.status_code}, {answer.text[:60]!r}"
    if isinstance(document, dict) and "detail" in document:
        return f"{answer.status_code} problem: {document['detail']}"
    return f"{answer.status_code} with the reply of another call: {answer.text[:40]}"
