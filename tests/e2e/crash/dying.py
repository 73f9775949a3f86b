"""A store whose process is killed right before or right after one of its steps."""

import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from beckon_agent.store.base import Store

END_TOLD = "end told"
"""The step that writes the end of a run into the log of what it tells."""


@dataclass
class Death:
    """The step at which a process dies, the `nth` of its kind, counted from 1."""

    when: Literal["before", "after"]
    step: str
    nth: int = 1

    def at(self, when: str, step: str) -> None:
        """Die, if it is time."""
        if (when, step) == (self.when, self.step):
            self.nth -= 1
            if self.nth == 0:
                os.kill(os.getpid(), signal.SIGKILL)


class Dying:
    """The store of a process that is to die."""

    def __init__(self, store: Store, death: Death) -> None:
        self._store = store
        self.runs: Any = _Watched(store.runs, death)
        self.journal: Any = _Watched(store.journal, death)
        self.events: Any = _Watched(store.events, death)
        self.conversations = store.conversations
        self.counters = store.counters
        self.materials = store.materials
        self.scratch = store.scratch

    async def aclose(self) -> None:
        """Close the store."""
        await self._store.aclose()


class _Watched:
    def __init__(self, part: object, death: Death) -> None:
        self._part = part
        self._death = death

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        real = getattr(self._part, name)

        async def passed_on(*args: Any, **kwargs: Any) -> Any:
            step = END_TOLD if name == "append" and _tells_the_end(args) else name
            self._death.at("before", step)
            result = await real(*args, **kwargs)
            self._death.at("after", step)
            return result

        return passed_on


def _tells_the_end(args: tuple[Any, ...]) -> bool:
    return any(event["type"] == "RunFinished" for part in args if isinstance(part, list) for event in part)
