"""A store whose process is killed right before or right after one of its steps."""

import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from beckon_agent.store.base import Store
from tests.agent.store.between import Between


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


class Dying(Between):
    """The store of a process that is to die."""

    def __init__(self, store: Store, death: Death) -> None:
        super().__init__(store)
        self._store = store
        self._death = death

    async def aclose(self) -> None:
        """Close the store."""
        await self._store.aclose()

    async def intercept(self, name: str, call: Callable[[], Awaitable[Any]], *args: Any) -> Any:
        """Make a call of the real store, unless it is time to die."""
        self._death.at("before", name)
        result = await call()
        self._death.at("after", name)
        return result
