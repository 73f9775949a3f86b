"""Starts and resumes the runs of AG-UI, and streams their events."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.api.agui.events import AguiStream
from beckon_agent.api.agui.request import AguiRequest, read_answers, read_request
from beckon_agent.api.http.errors import ApiError, to_api_error
from beckon_agent.api.http.streaming import KEEP_ALIVE, PacedStream
from beckon_agent.api.responses.create import decide_calls, find_answers
from beckon_agent.api.responses.documents import approval_id
from beckon_agent.api.responses.request import check_tools
from beckon_agent.core.records import NewRun, StoredRun
from beckon_agent.durable.base import Ask, Engine
from beckon_agent.store.base import Store

FACE = "ag-ui"
"""What runs of this face are stored under."""

_THREAD = "thread"  # the member of a run's request with the client's id of the thread
_MOST_PENDING = 1000


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
        resumed = None
        try:
            if request.resume:
                resumed = await self._resume_run(hosted, request, owner)
            else:
                await self._check_interrupts(request, owner)
        except ApiError as error:
            stream = AguiStream("", request.thread_id, request.run_id, agent=hosted.name)
            return _yield_error(stream, error)
        run, part = resumed or (await self._start_run(hosted, request, owner), 1)
        stream = AguiStream(run.id, request.thread_id, request.run_id, agent=hosted.name, part=part)
        return self._stream_run(stream, run, request.state)

    async def _start_run(self, hosted: AgentHandle, request: AguiRequest, owner: str) -> StoredRun:
        new = NewRun(
            id=f"agui_{token_hex(16)}",
            owner=owner,
            agent=hosted.name,
            face=FACE,
            input=request.messages,
            request={_THREAD: request.thread_id},
        )
        return await self.engine.start(Ask(new, hosted, request.options, request.options.client_tools))

    async def _resume_run(
        self, hosted: AgentHandle, request: AguiRequest, owner: str
    ) -> tuple[StoredRun, int]:
        """Decide the calls of a run that waits; return the run and its next part. Raises `ApiError`."""
        answers = await find_answers(read_answers(request.resume), self.engine, self.store, owner)
        if answers is None or not _is_of_thread(answers.run, hosted.name, request.thread_id):
            message = "resume: this thread has no such interrupts; send those that ended its last run"
            raise ApiError(404, message, code="approval_request_not_found", param="resume")
        await decide_calls(answers, self.engine)
        return answers.run, answers.part

    async def _check_interrupts(self, request: AguiRequest, owner: str) -> None:
        """Raise `ApiError` if a run of the thread waits for answers."""
        pending = await self.store.history.list_waiting_calls(
            owner, "approval", after=None, most=_MOST_PENDING
        )
        waiting: dict[str, list[str]] = {}
        for one in pending:
            if one.face == FACE:
                waiting.setdefault(one.run_id, []).append(approval_id(one.call.event_id))
        for run_id, interrupts in waiting.items():
            run = await self.engine.get(run_id)
            if run is not None and run.request.get(_THREAD) == request.thread_id:
                named = ", ".join(interrupts)
                message = f"this thread waits for answers; send 'resume' with an entry for each of {named}"
                raise ApiError(409, message, code="interrupts_pending")

    async def _stream_run(self, stream: AguiStream, run: StoredRun, state: object) -> AsyncGenerator[bytes]:
        events = PacedStream(self._encode_events(stream, run.id))
        try:
            yield stream.begin_run(state)
            async for several in events.yield_batches(self.keep_alive):
                yield b"".join(several) or KEEP_ALIVE
        except Exception as error:  # the status is sent: only the stream can report the error
            found = to_api_error(error)
            yield stream.end_failed(found.code, found.message)
        finally:
            await events.close()

    async def _encode_events(self, stream: AguiStream, run_id: str) -> AsyncGenerator[bytes]:
        """Yield the events of a part; a tool that answers later is waited for, an approval is not."""
        async with aclosing(self.engine.follow(run_id, wait=True)) as events:
            async for _, event in events:
                if found := stream.encode_event(event):
                    yield found
                if stream.is_ended:
                    return
        yield stream.end_cancelled()


def _is_of_thread(run: StoredRun, agent: str, thread_id: str) -> bool:
    return (run.face, run.agent, run.request.get(_THREAD)) == (FACE, agent, thread_id)


async def _yield_error(stream: AguiStream, error: ApiError) -> AsyncGenerator[bytes]:
    yield stream.begin_run(None) + stream.end_failed(error.code, error.message)
