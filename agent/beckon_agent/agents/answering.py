"""The condition Answering of a Tool, from the outcomes of its calls."""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from beckon_agent.telemetry.tool_spans import ANSWERED
from beckon_contract.failures import Reason
from beckon_contract.kubernetes_objects import condition
from beckon_contract.resources.tool_resource import ANSWERING
from beckon_contract.resources.tools import Tool
from beckon_sources.api_types import Document, Refused, Unreachable

logger = logging.getLogger(__name__)

FAILURES = 5  # in a row, with no result between them; fewer may be the model's fault
_PAUSE = 10.0  # seconds between two rounds of writes
# What a model or a person refused says nothing about the tool.
_FAILED = frozenset((Reason.TOOL_FAILED, Reason.TIMEOUT, Reason.UNDELIVERABLE, Reason.OUTCOME_UNKNOWN))

ToolPlace = tuple[str, str]  # namespace and name of a Tool


@dataclass(frozen=True, slots=True)
class StoredTool:
    """A Tool as it was seen last: its `resourceVersion` and its status."""

    version: str
    status: Mapping[str, Any]


class AnsweringReporter:
    """Counts outcomes of calls, and writes the condition Answering.

    It is written only if the stored one is not true any more. `find` returns a Tool as it was seen last,
    `patch` merges a document into it; `pause` is in seconds.
    """

    def __init__(
        self,
        find: Callable[[ToolPlace], StoredTool | None],
        patch: Callable[[ToolPlace, Document], Awaitable[Document]],
        pause: float = _PAUSE,
    ) -> None:
        self._find = find
        self._patch = patch
        self._pause = pause
        self._failures: dict[ToolPlace, Counter[str]] = {}
        self._due: set[ToolPlace] = set()
        self._wake = asyncio.Event()
        self._refused: set[int] = set()

    def call_ended(self, tool: Tool, outcome: str) -> None:
        """Record the outcome of a call: `answered`, or the reason of its failure."""
        place = tool.namespace, tool.event_type
        if outcome in _FAILED:
            self._failures.setdefault(place, Counter())[outcome] += 1
        elif outcome == ANSWERED:
            self._failures.pop(place, None)
        else:
            return
        if self._new_condition(place) is not None:
            self._due.add(place)
            self._wake.set()

    async def run(self) -> None:
        """Write until cancelled, each Tool at most once per pause."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            due, self._due = self._due, set()
            for place in sorted(due):
                await self._report_tool(place)
            await asyncio.sleep(self._pause * random.uniform(0.8, 1.2))  # noqa: S311  # jitter is no secret

    def _new_condition(self, place: ToolPlace) -> dict[str, str] | None:
        """Return the condition to write, `None` for no change.

        There is no change if the stored condition is still true, or if too little is known.
        """
        stored = self._find(place)
        if stored is None:
            self._failures.pop(place, None)
            return None
        known = condition(stored.status, ANSWERING)
        failures = self._failures.get(place)
        if failures is None:
            wrong = known is not None and known.status == "False"
            return _to_condition("True", "CallsAnswered", "a call gave a result again") if wrong else None
        if failures.total() < FAILURES or (known is not None and known.status == "False"):
            return None
        reasons = ", ".join(f"{reason} {count}×" for reason, count in failures.most_common())
        message = (
            f"the last {failures.total()} calls of one replica of the agent gave no result: {reasons}; "
            "see the logs of the tool, and call it by hand: POST /tools/NAME of the agent"
        )
        return _to_condition("False", "CallsFail", message)

    async def _report_tool(self, place: ToolPlace) -> None:
        news, stored = self._new_condition(place), self._find(place)
        if news is None or stored is None:
            return
        there = stored.status.get("conditions")
        others = [one for one in there if one.get("type") != ANSWERING] if isinstance(there, list) else []
        document = {
            # The list is replaced whole: only in the version that it was read from.
            "metadata": {"resourceVersion": stored.version},
            "status": {"conditions": [*others, news]},
        }
        try:
            await self._patch(place, document)
        except Unreachable:
            self._try_again(place)
        except Refused as error:
            if error.status == 409 or error.passing:
                self._try_again(place)
            elif error.status != 404 and error.status not in self._refused:
                self._refused.add(error.status)
                logger.warning("the condition %s of Tool %s/%s is not written: %s", ANSWERING, *place, error)
        except Exception:  # one Tool must not keep the others from their condition
            logger.exception("the condition %s of Tool %s/%s cannot be written", ANSWERING, *place)

    def _try_again(self, place: ToolPlace) -> None:
        self._due.add(place)
        self._wake.set()


def _to_condition(status: str, reason: str, message: str) -> dict[str, str]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    found = {"type": ANSWERING, "status": status, "reason": reason, "message": message}
    return {**found, "lastTransitionTime": now}
