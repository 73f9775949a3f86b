"""A tool as a Knative Function: served by the runtime that `func` builds around function/func.py."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest_asyncio

from beckon_contract.cloudevents.events import from_http, to_binary
from tests.e2e.local_platform import clean_environment, port_range
from tests.patience import PATIENCE
from tests.tools.serving import call

# As `func create --language python --template http` lays it out, and its build starts it.
FILES = {
    "function/__init__.py": "from .func import new\n",
    "function/func.py": """\
from beckon_tools.function import Function
from function.orders import order_status


def new() -> Function:
    return Function(order_status)
""",
    "function/orders.py": """\
import asyncio

from beckon_tools import tool


@tool(type="order.status")
async def order_status(number: int, seconds: float = 0.0) -> str:
    \"\"\"Tell the status of an order.\"\"\"
    await asyncio.sleep(seconds)
    return f"order {number} is packed"

""",
    "main.py": "from func_python.http import serve\nfrom function import new\n\nserve(new)\n",
}


class Running:
    """A function that is served."""

    def __init__(self, process: asyncio.subprocess.Process, client: httpx.AsyncClient) -> None:
        self.process = process
        self.client = client

    async def post(self, arguments: object, **more: str) -> httpx.Response:
        headers, body = to_binary(call("order.status", arguments, **more))
        return await self.client.post("/", headers=headers, content=body)

    async def runs_one(self) -> None:
        """Wait until it says that one call runs."""
        for _ in range(500):
            if "beckon_tool_running 1.0" in (await self.client.get("/metrics")).text:
                return
            await asyncio.sleep(0.01)
        raise AssertionError("no call runs")


@pytest_asyncio.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    """The function in a process of its own."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    port = port_range()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "main.py"),
        env=clean_environment({"LISTEN_ADDRESS": f"127.0.0.1:{port}", "BECKON_MAX_EVENT_BYTES": "70000"}),
        cwd=tmp_path,
        stderr=asyncio.subprocess.PIPE,
    )
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as client:
        try:
            await _ready(client)
            yield Running(process, client)
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
            _, said = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert process.returncode == 0, said.decode()
    assert b"Traceback" not in said, said.decode()


async def _ready(client: httpx.AsyncClient) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                response = await client.get("/health/readiness")
            except httpx.ConnectError:
                await asyncio.sleep(0.05)
                continue
            assert response.status_code == 200
            return


async def test_a_function_answers_a_call_with_a_reply_event(running: Running) -> None:
    response = await running.post({"number": 1001})

    reply = from_http(response.headers.raw, response.content)
    assert reply.json() == "order 1001 is packed"
    assert (reply.type, reply.extensions["replyid"]) == ("order.status.reply", "token-1")


async def test_bad_arguments_and_settings_count_as_in_any_service(running: Running) -> None:
    wrong = await running.post({"nummer": 1})
    large = await running.post({"number": 1, "note": "x" * 70_000}, id="call-2")

    assert (wrong.status_code, large.status_code) == (200, 413)
    refused = from_http(wrong.headers.raw, wrong.content).json()
    assert isinstance(refused, dict)
    assert refused["error"]["reason"] == "invalid_arguments"
    assert "number: Field required" in refused["error"]["message"]


async def test_a_call_that_is_delivered_twice_runs_once(running: Running) -> None:
    both = await asyncio.gather(*(running.post({"number": 7, "seconds": 0.3}) for _ in range(2)))

    assert [from_http(each.headers.raw, each.content).json() for each in both] == ["order 7 is packed"] * 2
    metrics = (await running.client.get("/metrics")).text
    assert 'beckon_tool_calls_total{outcome="replied"} 2.0' in metrics
    assert "beckon_tool_run_seconds_count 1.0" in metrics


async def test_a_call_that_runs_when_the_function_is_stopped_is_answered(running: Running) -> None:
    posted = asyncio.create_task(running.post({"number": 1, "seconds": 0.5}))
    await running.runs_one()
    running.process.send_signal(signal.SIGTERM)

    assert (await posted).status_code == 200
    assert await asyncio.wait_for(running.process.wait(), PATIENCE) == 0
