"""A scripted model for platforms in other processes: it serves from a thread of its own."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.agent.scripted_model import Script, ScriptedModel, scripted_model


class ModelThread:
    """The model's server; `play` says what it answers next; `never` is an event that does not come."""

    def __init__(self, model: ScriptedModel, never: asyncio.Event, loop: asyncio.AbstractEventLoop) -> None:
        self.base_url = model.base_url
        self.never = never
        self._model = model
        self._loop = loop

    def let(self, event: asyncio.Event) -> None:
        """Let a reply go on that holds for this event."""
        self._loop.call_soon_threadsafe(event.set)

    def play(self, *script: Script) -> None:
        """Forget the past, and answer with these replies one after another."""
        self._model.requests.clear()
        self._model.script[:] = script

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The requests since `play`, in their order."""
        return [request.body for request in self._model.requests]

    @property
    def headers(self) -> list[Mapping[str, str]]:
        """The headers of those requests."""
        return [request.headers for request in self._model.requests]


@contextmanager
def model_thread() -> Iterator[ModelThread]:
    """Serve a scripted model until the context ends."""
    loop = asyncio.new_event_loop()
    begun: list[ScriptedModel] = []
    ready, over, never = threading.Event(), asyncio.Event(), asyncio.Event()

    async def serve() -> None:
        async with scripted_model() as model:
            begun.append(model)
            ready.set()
            await over.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(10)
        yield ModelThread(begun[0], never, loop)
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(10)
        loop.close()
