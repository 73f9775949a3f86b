"""Calls the echo tool through the shim from many sides until its input ends, then reports the results.

`caller.py NAMESPACE WORKERS WAIT plain|agent`: `plain` posts each call once, with the shim's
credential and no more of Beckon; `agent` sends it through the agent's dispatcher. Once every worker has
had an answer, lines tell how many calls have ended; the last line is a JSON object.
"""

import asyncio
import json
import random
import sys
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from beckon_agent.tool_calls.broker import ReplyKeys
from beckon_agent.tool_calls.caller import Dispatcher
from beckon_agent.tool_calls.outcome import OutgoingCall
from beckon_contract.resources.tools import Tool

SHIM = "http://beckon-shim"
KEYS = ReplyKeys(path=Path("/secret/keys"))
SLOWEST = 1.0  # seconds that the tool takes


@dataclass
class Report:
    """What came of the calls: how many ended how, the longest, and samples of what went wrong."""

    outcomes: Counter[str] = field(default_factory=Counter)
    longest: dict[str, float] = field(default_factory=dict)
    samples: dict[str, str] = field(default_factory=dict)

    def note(self, outcome: str, seconds: float, sample: str) -> None:
        self.outcomes[outcome] += 1
        self.longest[outcome] = max(seconds, self.longest.get(outcome, 0.0))
        self.samples.setdefault(outcome, sample[:300])


class Plain:
    """Posts a call once, and again only where it never got a connection."""

    def __init__(self, session: aiohttp.ClientSession, namespace: str, wait: float) -> None:
        self._session = session
        self._path = f"/{namespace}/default"
        self._wait = wait

    async def call(self, text: str, seconds: float) -> tuple[str, str]:
        headers = {
            "ce-specversion": "1.0",
            "ce-id": text,
            "ce-source": "/beckon/tests",
            "ce-type": "echo",
            "content-type": "application/json",
            "prefer": f"wait={self._wait:g}",
        }
        body = json.dumps({"text": text, "seconds": seconds}).encode()
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        while True:
            try:
                credential = KEYS.sign_call(self._path, raw, body)
                signed = {**headers, "authorization": credential or ""}
                async with self._session.post(SHIM + self._path, data=body, headers=signed) as answer:
                    return _judged(answer.status, await answer.text(), text)
            except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
                await asyncio.sleep(0.05)
            except aiohttp.ClientError as error:
                return "lost", repr(error)


def _judged(status: int, body: str, text: str) -> tuple[str, str]:
    if status != 200:
        return f"{status} {json.loads(body)['type'].rpartition('/')[2]}", body
    return ("answered", "") if json.loads(body) == text else ("wrong", body)


class Agent:
    """Sends a call as the agent does."""

    def __init__(self, session: aiohttp.ClientSession, namespace: str, wait: float) -> None:
        self._dispatcher = Dispatcher(session, SHIM, keys=KEYS)
        self._tool = Tool(
            "echo", namespace, "echo", "echo", None, "", {"type": "object"}, "", wait, idempotent=True
        )
        self._wait = wait

    async def call(self, text: str, seconds: float) -> tuple[str, str]:
        arguments = {"text": text, "seconds": seconds}
        outcome = await self._dispatcher.send(
            OutgoingCall(text, self._tool, arguments, "/beckon/tests", self._wait)
        )
        if outcome.failed:
            result: Any = outcome.result
            return result["error"]["reason"], result["error"]["message"]
        return ("answered", "") if outcome.result == text else ("wrong", repr(outcome.result))


async def work(caller: Plain | Agent, shown: Report, stop: asyncio.Event, warm: asyncio.Barrier) -> None:
    """Call until it is enough."""
    first = True
    while not stop.is_set():
        begun = time.monotonic()
        outcome, sample = await caller.call(uuid.uuid4().hex, random.uniform(0.05, SLOWEST))
        shown.note(outcome, time.monotonic() - begun, sample)
        if first:
            first = False
            await warm.wait()
        say(shown.outcomes.total())


def say(what: object) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{json.dumps(what)}\n")
    sys.stdout.flush()


async def main(namespace: str, workers: int, wait: float, client: str) -> None:
    """Start the workers, wait for the end of the input, and tell."""
    shown, stop, warm = Report(), asyncio.Event(), asyncio.Barrier(workers)
    connector = aiohttp.TCPConnector(limit=0)
    limits = aiohttp.ClientTimeout(total=None, sock_connect=2)
    async with aiohttp.ClientSession(connector=connector, timeout=limits) as session:
        caller = (Agent if client == "agent" else Plain)(session, namespace, wait)
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(work(caller, shown, stop, warm))
            await asyncio.to_thread(sys.stdin.read)
            stop.set()
    say({"outcomes": shown.outcomes, "longest": shown.longest, "samples": shown.samples})


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]))
