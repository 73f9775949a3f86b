"""An MCP server that is a command: kept, looked after, started again, and heard in the log."""

import asyncio
import contextlib
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from beckon_adapter.__main__ import read_command_line
from beckon_adapter.mcp import command_server
from beckon_adapter.rule import NamedServer
from beckon_contract.cloudevents.events import to_binary
from beckon_contract.kubernetes_objects import Resource, from_object
from beckon_tools.errors import UsageError
from tests.adapter.plain_api import adapting, egress_to
from tests.e2e.local_platform import clean_environment, is_running, port_range
from tests.patience import PATIENCE, eventually, until
from tests.tools.serving import Caller, call

SERVER = Path(__file__).with_name("wild_mcp_tools.py")
NUMBER = {
    "type": "object",
    "properties": {"number": {"title": "Number", "type": "integer"}},
    "required": ["number"],
    "title": "firstArguments",
}
NONE = {"type": "object", "properties": {}, "title": "processArguments"}


def tool_of(tool: str, parameters: object = None, timeout: str = "20s") -> Resource:
    """Build an EventType whose calls are those of a tool of the server `wild`."""
    annotations = {
        "beckon.dev/mcp": f"{{server: wild, tool: {tool}, timeout: {timeout}}}",
        "beckon.dev/parameters": json.dumps(parameters or {"type": "object"}),
    }
    return from_object(
        {
            "apiVersion": "eventing.knative.dev/v1beta2",
            "kind": "EventType",
            "metadata": {"name": f"wild.{tool}", "annotations": annotations},
            "spec": {"type": f"wild.{tool}", "description": "Misbehave."},
        }
    )


@asynccontextmanager
async def bridging(*tools: Resource, **environment: str) -> AsyncIterator[Caller]:
    server = NamedServer(
        name="wild",
        command=(sys.executable, str(SERVER)),
        env=environment,
        secret=frozenset({"SECRET"} & environment.keys()),
    )
    async with adapting(egress_to(), *tools, servers=[server]) as adapter:
        yield adapter


def call_event(tool: str, arguments: object, id: str) -> Any:  # noqa: A002 - the attribute's name
    return call(f"wild.{tool}", arguments, id=id)


async def pid_of(adapter: Caller, id: str) -> int:  # noqa: A002 - the attribute's name
    return int(str(await adapter.result(call_event("process", {}, id))))


async def test_a_command_that_was_killed_between_two_calls_is_another_one_at_the_next(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with bridging(tool_of("process")) as adapter:
        first = await pid_of(adapter, "1")
        os.kill(first, signal.SIGKILL)
        await until(lambda: "the MCP server wild has ended" in caplog.text)
        second = await pid_of(adapter, "2")

    assert second != first


async def test_a_command_that_hangs_is_given_up_and_replaced_and_its_effect_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_server, "_SIGN_OF_LIFE_SECONDS", 0.3)
    mark = tmp_path / "mark"
    async with bridging(tool_of("hang", timeout="1s"), tool_of("process")) as adapter:
        first = await pid_of(adapter, "1")
        hung = await adapter.result(call_event("hang", {"mark": str(mark)}, "2"))
        delivered_again = await adapter.result(call_event("hang", {"mark": str(mark)}, "2"))
        await until(lambda: not is_running(first))
        second = await pid_of(adapter, "3")

    assert "did not answer in time; the call may have had its effect, and was not repeated" in str(hung)
    assert delivered_again == hung
    assert mark.read_text() == "hung\n"
    assert second != first


async def test_nothing_of_a_command_is_left_when_the_bridge_ends() -> None:
    async with bridging(tool_of("process")) as adapter:
        pid = await pid_of(adapter, "1")

    assert not is_running(pid)


async def test_what_a_command_complains_of_is_logged_without_its_secrets_and_not_without_end(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(command_server, "_MOST", 3)
    async with bridging(tool_of("complain"), SECRET="s3cr3t-key") as adapter:
        await adapter.result(
            call_event("complain", {"text": "x" * 5000 + "\nwith s3cr3t-key", "times": 9}, "1")
        )

    messages = [record.getMessage() for record in caplog.records if record.name.endswith(".command_server")]
    said = [message for message in messages if message.startswith("wild: ")]
    assert said == [
        f"wild: {'x' * 2000}",
        "wild: with [hidden]",
        said[0],
        "wild: 15 more lines were left out of the log",
    ]


async def test_a_secret_that_a_command_shows_does_not_reach_the_model() -> None:
    async with bridging(tool_of("secret"), SECRET='s3"cr3t-key') as adapter:
        assert await adapter.result(call_event("secret", {}, "1")) == "it is [hidden]"


async def test_what_is_no_message_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    command = ("sh", "-c", 'echo welcome; echo again; exec "$0" "$1"', sys.executable, str(SERVER))
    server = NamedServer(name="wild", command=command)
    async with adapting(egress_to(), tool_of("process"), servers=[server]) as adapter:
        await pid_of(adapter, "1")

    noise = [record for record in caplog.records if "is no message" in record.getMessage()]
    assert len(noise) == 1


async def metric(adapter: Caller) -> str:
    lines = (await adapter.client.get("/metrics")).text.splitlines()
    return next((line for line in lines if line.startswith("beckon_mcp_tools_differing{")), "")


async def measured(adapter: Caller, wanted: str) -> None:
    for _ in range(250):
        if await metric(adapter) == f'beckon_mcp_tools_differing{{server="wild"}} {wanted}':
            return
        await asyncio.sleep(0.02)
    raise AssertionError(await metric(adapter))


async def test_tools_that_are_no_longer_those_of_the_eventtypes_are_reported_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "changed").touch()
    tools = [
        tool_of("second", NUMBER),
        tool_of("gone"),
        tool_of("process", NONE),
    ]
    async with bridging(*tools, TOOLS=str(tmp_path / "changed")) as adapter:
        await pid_of(adapter, "1")
        await measured(adapter, "2.0")

    assert (
        "the MCP server wild is no longer what was imported: it has no tool gone; second has no parameter "
        "number and a new parameter count; import it again"
    ) in caplog.messages


async def test_tools_that_agree_are_counted_as_none(caplog: pytest.LogCaptureFixture) -> None:
    async with bridging(tool_of("second", NUMBER)) as adapter:
        await adapter.result(call_event("second", {"number": 1}, "1"))
        await measured(adapter, "0.0")

    assert "no longer what was imported" not in caplog.text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--mcp", "wild"], "the command is missing"),
        (["--mcp", "wild", "--"], "the command is missing"),
        (["--", "true"], "--mcp"),
        (["--mcp", "A B", "--", "true"], "--mcp 'A B'"),
        (["--mcp", "wild", "--env", "NO_SUCH", "--", "true"], "the environment has no such variable"),
        (["--mcp", "wild", "more", "--", "true"], "unrecognized arguments: more"),
    ],
)
def test_words_that_make_no_sense_are_one_line(words: list[str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_command_line(words, {})

    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@asynccontextmanager
async def running(
    folder: Path, *words: str, server: str = str(SERVER), status: int = 200, **environment: str
) -> AsyncIterator[tuple[Caller, Any]]:
    """Run the bridge as an image of its own runs it, until /readyz has this status; give its process, too."""
    port = port_range()
    process = await asyncio.create_subprocess_exec(
        *words,
        *(sys.executable, "-m", "beckon_adapter", "--mcp", "wild", "--manifests", str(folder)),
        *("--env", "SECRET", "--", sys.executable, server),
        env=clean_environment({"PORT": str(port), "SECRET": "s3cr3t-key", **environment}),
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as client:
            await asyncio.wait_for(_ready(client, status), PATIENCE)
            yield Caller(client), process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        process.log = (await asyncio.wait_for(process.communicate(), PATIENCE))[1].decode()  # type: ignore[attr-defined]  # for the test


async def _ready(client: httpx.AsyncClient, status: int) -> None:
    while True:
        with contextlib.suppress(httpx.TransportError):
            if (await client.get("/readyz")).status_code == status:
                return
        await asyncio.sleep(0.05)


def written(folder: Path, *tools: Resource) -> Path:
    """Write EventTypes into a folder, as an image has them."""
    documents = [
        {
            "apiVersion": tool.api_version,
            "kind": tool.kind,
            "metadata": {"name": tool.name, "annotations": dict(tool.annotations)},
            "spec": dict(tool.spec),
        }
        for tool in tools
    ]
    (folder / "tools.yaml").write_text("\n---\n".join(map(json.dumps, documents)))
    return folder


async def test_a_bridge_whose_server_does_not_start_says_why_at_readyz(tmp_path: Path) -> None:
    written(tmp_path, tool_of("process"))
    async with running(tmp_path, server="no-such-file.py", status=503) as (bridge, _):

        async def starts_no_more() -> bool:
            return (await bridge.client.get("/readyz")).text.startswith(
                "the MCP server wild does not start: "
            )

        await eventually(starts_no_more)


async def test_a_bridge_with_its_eventtypes_runs_the_command_before_any_call_and_ends_with_it(
    tmp_path: Path,
) -> None:
    written(tmp_path, tool_of("process"), tool_of("secret"))
    async with running(tmp_path) as (bridge, process):
        first = await pid_of(bridge, "1")
        headers, body = to_binary(call_event("process", {}, "2"))
        elsewhere = await bridge.client.post("/", headers=[*headers, ("kn-namespace", "shop")], content=body)
        hidden = await bridge.result(call_event("secret", {}, "3"))
        os.kill(first, signal.SIGKILL)
        await until(lambda: not is_running(first))

    assert elsewhere.text == f'"{first}"'
    assert hidden == "it is [hidden]"
    assert process.returncode == 0
    assert "s3cr3t-key" not in process.log


def may_unshare() -> bool:
    """Whether a namespace of processes can be made here."""
    if not shutil.which("unshare"):
        return False
    return (
        subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True, check=False).returncode
        == 0
    )


@pytest.mark.skipif(not may_unshare(), reason="only root makes a namespace of processes")
async def test_the_first_process_of_a_container_buries_orphans_and_ends_at_a_signal(tmp_path: Path) -> None:
    written(tmp_path, tool_of("orphan"))
    unshare = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
    async with running(tmp_path, *unshare) as (bridge, process):
        await bridge.result(call_event("orphan", {}, "1"))
        (init,) = children(process.pid)
        assert len(children(init)) == 2
        await until(lambda: len(children(init)) == 1)
        os.kill(init, signal.SIGTERM)
        await asyncio.wait_for(process.wait(), PATIENCE)

    assert process.returncode == 0


def children(pid: int) -> list[int]:
    """Return the processes that another has started or been left, those that no one has buried among them."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
