"""Chat completions whose runs are stored, as `store` of OpenAI asks for: to be looked at and replayed."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal

from fastapi import Request

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.core.model_types import Message
from beckon_agent.core.records import NewRun
from beckon_agent.core.run_types import Options, RunEvent, RunSuspended
from beckon_agent.durable.base import AnswerDropped, Ask, Engine, RunFailed, TurnNoted
from beckon_agent.faces.openai_errors import FaceError

FACE = "chat.completions"
"""What they are stored under; the id of a run is that of its completion."""

_STATUS: dict[str, Literal[429, 503]] = {"rate_limit_exceeded": 429, "overloaded": 503}


@dataclass(frozen=True, slots=True)
class ChatRuns:
    """Begins runs that are stored; `always` unless a request says otherwise."""

    engine: Engine
    owner_of: Callable[[Request], str]
    always: bool = False

    def wanted(self, store: bool | None) -> bool:
        """Whether the run of a request is stored."""
        return self.always if store is None else store

    async def begin(
        self, request: Request, hosted: AgentHandle, run: str, messages: Sequence[Message], options: Options
    ) -> AsyncGenerator[RunEvent]:
        """Store and begin a run; raise what `Engine.start` raises."""
        new = NewRun(id=run, owner=self.owner_of(request), agent=hosted.name, face=FACE, input=messages)
        await self.engine.start(Ask(new, hosted, options, options.client_tools))
        return self._events(run)

    async def _events(self, run: str) -> AsyncGenerator[RunEvent]:
        """Yield what happens. Where a person has to allow a call, the client waits for them, too."""
        async with aclosing(self.engine.follow(run, wait=True)) as events:
            async for _, event in events:
                match event:
                    case RunFailed(code, message):
                        raise FaceError(_STATUS.get(code, 502), message, code=code)
                    case AnswerDropped():  # of what its client has read nothing can be taken back
                        raise FaceError(502, "the answer broke off, and was begun anew", code="broken_off")
                    case TurnNoted() | RunSuspended():
                        pass
                    case _:
                        yield event
