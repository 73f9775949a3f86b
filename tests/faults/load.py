"""A client that begins ten runs a second, each with two tool calls side by side, and follows each to its end.

It is an ordinary client of the Responses API: it comes again after a refused connection, and joins the stream
of its run where that broke. A request that broke before its run had an id is made again under another name.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp

RUNS_PER_SECOND = 10
CALLS_OF_RUN = 2
MARGIN_SECONDS = 45.0
"""Seconds after the deadline of its calls in which a run must have ended: its agent may be killed twice."""

_PAUSE_SECONDS = 0.2
_BUSY = frozenset({429, 503})
_FINAL = frozenset({"response.completed", "response.failed", "response.incomplete"})


def open_session(headers: Mapping[str, str] | None = None) -> aiohttp.ClientSession:
    """Return a session as a careful client has it: a stream without a sign of life is joined again.

    The agent sends a comment every 15 s.
    """
    return aiohttp.ClientSession(
        headers=headers,
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=25),
    )


@dataclass(slots=True)
class Run:
    """A run as its client sees it; `response` is `None` until it has ended. `row` is that of the table."""

    name: str
    row: tuple[str, str]
    begun: float
    seconds: float = 0.0
    id: str = ""
    seen: int = -1
    response: dict[str, Any] | None = None
    refusal: str = ""
    """What the agent answered in place of a run."""


@dataclass(slots=True)
class Client:
    """The client of one agent. `orphans` are the names of requests whose answer broke off without an id."""

    agent: str
    http: aiohttp.ClientSession
    call_seconds: float
    runs: list[Run] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)
    _following: set[asyncio.Task[None]] = field(default_factory=set)

    async def load(self, row: tuple[str, str], seconds: float) -> None:
        """Begin runs for so many seconds; they count in a row of the table."""
        begun = time.monotonic()
        for number in range(round(seconds * RUNS_PER_SECOND)):
            await asyncio.sleep(begun + number / RUNS_PER_SECOND - time.monotonic())
            run = Run(f"{'/'.join(row)}/{len(self.runs)}", row, time.monotonic())
            self.runs.append(run)
            task = asyncio.create_task(self._follow(run))
            self._following.add(task)
            task.add_done_callback(self._following.discard)

    async def end(self) -> None:
        """Wait until all runs have ended, or their time is over."""
        await asyncio.gather(*self._following)

    async def _follow(self, run: Run) -> None:
        try:
            async with asyncio.timeout(self.call_seconds + MARGIN_SECONDS):
                while run.response is None and not run.refusal:
                    await self._try(run)
        except TimeoutError:
            pass
        run.seconds = time.monotonic() - run.begun

    async def _try(self, run: Run) -> None:
        """Begin the run or join it, and take its events until they end or the connection breaks."""
        try:
            await (self._join(run) if run.id else self._begin(run))
        except aiohttp.ClientConnectorError:
            await asyncio.sleep(_PAUSE_SECONDS)
        except (aiohttp.ClientError, OSError):
            if not run.id:
                self.orphans.append(run.name)
                run.name += "+"
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _begin(self, run: Run) -> None:
        request = {"input": run.name, "background": True, "stream": True, "include": ["mcp_call"]}
        async with self.http.post(f"{self.agent}/v1/responses", json=request) as answer:
            await self._take(run, answer)

    async def _join(self, run: Run) -> None:
        query = {"stream": "true", "starting_after": str(run.seen)}
        async with self.http.get(f"{self.agent}/v1/responses/{run.id}", params=query) as answer:
            await self._take(run, answer)

    async def _take(self, run: Run, answer: aiohttp.ClientResponse) -> None:
        if answer.status in _BUSY:
            await asyncio.sleep(_PAUSE_SECONDS)
            return
        if answer.status != 200:
            run.refusal = f"HTTP {answer.status}: {(await answer.text())[:200]}"
            return
        async for event in _events(answer):
            run.seen = event["sequence_number"]
            if "response" in event:
                run.id = event["response"]["id"]
            if event["type"] in _FINAL:
                run.response = event["response"]


async def _events(answer: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    async for line in answer.content:
        if line.startswith(b"data: ") and line.strip() != b"data: [DONE]":
            yield json.loads(line[6:])
