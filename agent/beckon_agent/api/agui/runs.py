"""Starts and resumes the runs of AG-UI, and streams their events."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.api.agui.events import AguiStream
from beckon_agent.api.agui.interrupts import FACE, THREAD, Interrupts, Thread
from beckon_agent.api.agui.request import AguiRequest, read_request
from beckon_agent.api.http.errors import ApiError, to_api_error
from beckon_agent.api.http.streaming import KEEP_ALIVE, PacedStream
from beckon_agent.api.responses.request import check_tools
from beckon_agent.core.records import NewRun, StoredRun
from beckon_agent.durable.base import Ask, Engine
from beckon_agent.store.base import Store


@dataclass(frozen=True, slots=True)
class AguiRuns:
    """The runs of one process; a comment is sent after `keep_alive` seconds of silence."""

    engine: Engine
    store: Store
    keep_alive: float

    async def begin_stream(
        self, hosted: AgentHandle, document: Mapping[str, Any], owner: str
    ) -> AsyncGenerator[bytes]:
        """Start or resume a run; return its events.

        Raises `ApiError` for a request that cannot be read, and the errors of `Engine.start`. Errors about
        interrupts are events of the stream, as the protocol has them.
        """
        request = read_request(document)
        check_tools(request.options, hosted.catalogue.current.tools)
        thread = Thread(request.thread_id, hosted.name, owner)
        interrupts = Interrupts(self.engine, self.store)
        run = None
        try:
            if request.resume:
                run = await interrupts.answer(request.resume, thread)
            else:
                await interrupts.check_none(thread)
        except ApiError as error:
            stream = AguiStream("", request.thread_id, request.run_id, agent=hosted.name)
            return _yield_error(stream, error)
        answered = {one.interrupt_id for one in request.resume}
        run = run or await self._start_run(hosted, request, owner)
        stream = AguiStream(run.id, request.thread_id, request.run_id, agent=hosted.name, answered=answered)
        return self._stream_run(stream, run, request.state)

    async def _start_run(self, hosted: AgentHandle, request: AguiRequest, owner: str) -> StoredRun:
        new = NewRun(
            id=f"agui_{token_hex(16)}",
            owner=owner,
            agent=hosted.name,
            face=FACE,
            input=request.messages,
            request={THREAD: request.thread_id},
        )
        return await self.engine.start(Ask(new, hosted, request.options, request.options.client_tools))

    async def _stream_run(self, stream: AguiStream, run: StoredRun, state: object) -> AsyncGenerator[bytes]:
        events = PacedStream(self._encode_events(stream, run.id))
        try:
            yield stream.begin_run(state)
            async for several in events.yield_batches(self.keep_alive):
                yield b"".join(several) or KEEP_ALIVE
        except Exception as error:  # the status is sent: only the stream can report the error
            api_error = to_api_error(error)
            yield stream.end_failed(api_error.code, api_error.message)
        finally:
            await events.close()

    async def _encode_events(self, stream: AguiStream, run_id: str) -> AsyncGenerator[bytes]:
        """Yield the events of a part; a tool that answers later is waited for, a person is not."""
        async with aclosing(self.engine.follow(run_id, wait=True)) as events:
            async for _, event in events:
                if encoded := stream.encode_event(event):
                    yield encoded
                if stream.is_ended:
                    return
        yield stream.end_cancelled()


async def _yield_error(stream: AguiStream, error: ApiError) -> AsyncGenerator[bytes]:
    yield stream.begin_run(None) + stream.end_failed(error.code, error.message)
