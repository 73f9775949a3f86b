"""How a function is run: plain or async, side by side, for no longer than its call is waited for."""

import asyncio
import signal
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
from opentelemetry import trace

from beckon_contract.cloudevents.events import to_binary
from beckon_tools import ToolError, tool
from tests.e2e.local_platform import clean_environment, port_range
from tests.patience import PATIENCE
from tests.tools.serving import call, calling


@tool(type="fail")
async def fail(reason: str) -> str:
    """Fail for good."""
    raise ToolError(reason)


@tool(type="block")
def block(text: str) -> dict[str, object]:
    """Work without async."""
    return {"text": text, "thread": threading.current_thread() is threading.main_thread()}


async def test_a_plain_function_runs_in_a_thread_and_answers_as_any_other() -> None:
    async with calling(block) as caller:
        assert await caller.result(call("block", {"text": "a"})) == {"text": "a", "thread": False}
    assert block("b") == {"text": "b", "thread": True}


async def test_plain_functions_run_side_by_side_as_many_as_calls_may_run() -> None:
    barrier = threading.Barrier(40, timeout=20)

    @tool(type="meet")
    def meet() -> str:
        """Meet forty others."""
        barrier.wait()
        return "met"

    async with calling(meet, concurrency=40) as caller:
        results = await asyncio.gather(
            *(caller.result(call("meet", {}, id=f"call-{number}")) for number in range(40))
        )
    assert set(results) == {"met"}


async def test_a_call_that_expires_while_it_runs_is_stopped_and_reported_as_out_of_time() -> None:
    stopped = asyncio.Event()

    @tool(type="wait")
    async def wait() -> None:
        """Wait for ever."""
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    soon = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    async with calling(wait) as caller:
        result = await caller.result(call("wait", {}, expirytime=soon))
    assert result == {
        "error": {"reason": "timeout", "message": "the call expired while the tool ran; the tool was stopped"}
    }
    assert stopped.is_set()


async def test_a_time_out_of_the_tools_own_is_no_expiry_of_its_call() -> None:
    @tool(type="slow")
    async def slow() -> None:
        """Be slow."""
        raise TimeoutError

    later = (datetime.now(UTC) + timedelta(hours=2)).isoformat()
    async with calling(slow) as caller:
        result = await caller.result(call("slow", {}, expirytime=later))
    assert result == {"error": {"reason": "tool_failed", "message": "TimeoutError"}}


async def test_what_a_tool_error_says_is_cut_to_what_a_model_would_read() -> None:
    async with calling(fail) as caller:
        result = await caller.result(call("fail", {"reason": "a" * 100_000}))
    assert isinstance(result, dict)
    message = result["error"]["message"]
    assert len(message) == 4000
    assert message.endswith("…")


@tool(type="stop")
def stop_iteration() -> None:
    """Raise what no future can hold."""
    next(iter([]))


async def test_a_plain_function_may_raise_anything() -> None:
    async with calling(stop_iteration) as caller:
        result = await caller.result(call("stop", {}))
    assert result == {
        "error": {"reason": "tool_failed", "message": "RuntimeError: the function raised StopIteration()"}
    }


async def test_a_plain_function_runs_in_the_context_of_its_call() -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    @tool(type="trace")
    def traced() -> str:
        """Tell the trace."""
        return f"{trace.get_current_span().get_span_context().trace_id:032x}"

    async with calling(traced) as caller:
        assert await caller.result(call("trace", {}, traceparent=parent)) == parent.split("-")[1]


STUCK = '''
import sys, threading
from beckon_tools import tool

@tool(type="stuck")
def stuck() -> None:
    """Never end."""
    sys.stderr.write("stuck\\n")
    threading.Event().wait()
'''


async def test_a_plain_function_that_never_ends_does_not_keep_its_process(tmp_path: Path) -> None:
    (tmp_path / "stuck.py").write_text(STUCK)
    port = port_range()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "beckon_tools", "serve", "stuck:stuck"),
        env=clean_environment({"PORT": str(port), "BECKON_DRAIN_SECONDS": "1"}),
        cwd=tmp_path,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        await asyncio.wait_for(process.stderr.readline(), PATIENCE)
        soon = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
        headers, body = to_binary(call("stuck", {}, expirytime=soon))
        async with httpx.AsyncClient(timeout=PATIENCE) as client:
            answer = await client.post(f"http://127.0.0.1:{port}/", headers=headers, content=body)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), PATIENCE) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert answer.json()["error"]["reason"] == "timeout"
