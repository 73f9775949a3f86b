"""Model clients, one for each model, server and key."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field

from beckon_agent.core.model_types import Message
from beckon_agent.core.run_events import StreamItem
from beckon_agent.core.run_types import Options
from beckon_agent.model.client import ModelClient
from beckon_agent.model.errors import ModelAuthError
from beckon_agent.run.model_turn import DialectModel
from beckon_contract.resources.agent_resource import TextCalls
from beckon_contract.resources.tools import Tool

logger = logging.getLogger(__name__)

_GRACE = 5.0  # seconds; a request may have found an agent whose run has not begun yet


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model, its server, its dialect and its key. An empty `name` is the server's first model."""

    base_url: str
    name: str
    dialect: str
    api_key: str = field(repr=False)
    text_calls: TextCalls = "own"


class SharedModel:
    """A model client, open while an agent or a run holds it."""

    def __init__(self, spec: ModelSpec, denied: Callable[[], None], let_go: Callable[[], None]) -> None:
        """Raise `ValueError` for an unusable address, key or dialect."""
        self.spec = spec
        self.client = ModelClient(spec.base_url, spec.api_key, spec.name)
        self.holders = 0
        self._model = DialectModel(self.client, spec.dialect, spec.text_calls)
        self._denied = denied
        self._let_go = let_go

    @property
    def name(self) -> str:
        """The model's name at its server, and the dialect in use."""
        return self._model.name

    async def tool_limit(self) -> int:
        """Return how many declarations one request may have; raises `ModelError`."""
        with self._reporting_denial():
            return await self._model.tool_limit()

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[Tool], options: Options
    ) -> AsyncGenerator[StreamItem]:
        """Yield the pieces of one answer.

        A refused key is reported to the pool, since it may have been changed meanwhile.
        """
        with self._reporting_denial():
            async with aclosing(self._model.stream(messages, tools, options)) as items:
                async for item in items:
                    yield item

    def hold_model(self) -> None:
        """Keep the model open until `release_model`."""
        self.holders += 1

    def release_model(self) -> None:
        """Give the model back; the last holder closes it."""
        self.holders -= 1
        if not self.holders:
            self._let_go()

    @contextmanager
    def _reporting_denial(self) -> Iterator[None]:
        """Report a key refused inside the block."""
        try:
            yield
        except ModelAuthError:
            self._denied()
            raise

    @contextmanager
    def hold_open(self) -> Iterator[None]:
        """Keep the model open inside the block."""
        self.hold_model()
        try:
            yield
        finally:
            self.release_model()


class ModelPool:
    """All models in use.

    `denied` is called when a server refuses a key. An unused model is closed after `grace` seconds.
    """

    def __init__(self, denied: Callable[[], None], *, grace: float = _GRACE) -> None:
        self._denied = denied
        self._grace = grace
        self._models: dict[ModelSpec, SharedModel] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def take_model(self, spec: ModelSpec) -> SharedModel:
        """Return a model, held for the caller, to be released by it.

        Raises `ValueError` for an unusable specification.
        """
        shared = self._models.get(spec)
        if shared is None:
            shared = SharedModel(spec, self._denied, lambda: self._close_later(spec))
            self._models[spec] = shared
        shared.hold_model()
        return shared

    def open_models(self) -> Sequence[SharedModel]:
        """Return the models held at the moment."""
        return [shared for shared in self._models.values() if shared.holders]

    async def close(self) -> None:
        """Close all of them at once."""
        for task in self._closing:
            task.cancel()
        await asyncio.gather(*self._closing, return_exceptions=True)
        models, self._models = self._models, {}
        for shared in models.values():
            await shared.client.aclose()

    def _close_later(self, spec: ModelSpec) -> None:
        task = asyncio.create_task(self._close_model(spec))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _close_model(self, spec: ModelSpec) -> None:
        await asyncio.sleep(self._grace)
        shared = self._models.get(spec)
        if shared is not None and not shared.holders:
            del self._models[spec]
            await shared.client.aclose()
            logger.info("closed the connections to a model that no agent speaks to any more")
