"""The command line, as processes of their own."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml

from beckon_contract.cloudevents.events import from_http, to_binary
from beckon_tools.command import run_command
from beckon_tools.errors import UsageError
from beckon_tools.shipped import SHIPPED
from tests.command_server import run_module
from tests.patience import PATIENCE, until
from tests.tools.serving import call, configured

SLOW_TOOL = '''
import asyncio
import pathlib

from beckon_tools import tool


@tool(type="slow")
async def slow(marker: str, until: str) -> str:
    """Take its time."""
    pathlib.Path(marker).touch()
    while not pathlib.Path(until).exists():
        await asyncio.sleep(0.01)
    return "finished"


@tool(type="plain")
async def plain() -> str:
    """Answer at once."""
    return "at once"


async def bare() -> str: ...
'''


def run(*arguments: str, folder: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_module("beckon_tools", *arguments, cwd=folder, env={**os.environ, **environment})


@contextmanager
def serving(name: str, folder: Path, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a tool on a free port; give the process and its address, read from its log."""
    process = subprocess.Popen(
        [sys.executable, "-m", "beckon_tools", "serve", name, "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, **environment},
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        address = re.search(r"http://[\d.]+:\d+", line)
        assert address, line
        yield process, address[0]
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def author(tmp_path: Path) -> Path:
    (tmp_path / "my_tools.py").write_text(SLOW_TOOL)
    return tmp_path


def test_list_shows_every_shipped_tool() -> None:
    listed = run("list")
    assert listed.returncode == 0
    assert [line.split()[0] for line in listed.stdout.splitlines()] == list(SHIPPED)


def test_manifest_prints_three_documents_that_kubectl_can_take() -> None:
    printed = run("manifest", "current.time", "--namespace", "shop")
    assert printed.returncode == 0
    documents = list(yaml.safe_load_all(printed.stdout))
    assert [document["kind"] for document in documents] == ["EventType", "Trigger", "Service"]


def test_manifest_writes_a_file_each_into_a_folder(author: Path) -> None:
    assert run("manifest", "my_tools:plain", "--output", "out", folder=author).returncode == 0
    assert sorted(path.name for path in (author / "out").iterdir()) == [
        "eventtype.yaml",
        "service.yaml",
        "trigger.yaml",
    ]


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ([], "VERB"),
        (["serve", "my_tools:missing"], "missing"),
        (["serve", "my_tools:bare"], "no tool"),
        (["manifest", "calculator", "--output", "my_tools.py/out"], "cannot write"),
    ],
)
def test_bad_usage_is_one_line_and_exit_2(arguments: list[str], shown: str, author: Path) -> None:
    done = run(*arguments, folder=author)
    assert done.returncode == 2
    assert done.stdout == ""
    assert shown in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["fly"], "fly"),
        (["serve"], "NAME"),
        (["serve", "calculato"], "did you mean 'calculator'?"),
        (["serve", "nonsense"], "the shipped tools are"),
        (["serve", ":"], "cannot be imported"),
        (["serve", "no_such_module:thing"], "no_such_module"),
        (["serve", "json:dumps"], "no tool"),
        (["serve", "calculator", "--port", "99999"], "99999"),
        (["serve", "calculator", "--port", "x"], "'x' is no port"),
        (["serve", "calculator", "--host", "203.0.113.1", "--port", "0"], "cannot listen on 203.0.113.1:0"),
    ],
)
def test_what_is_wrong_with_a_command_is_reported_in_one_line(arguments: list[str], shown: str) -> None:
    with pytest.raises(UsageError) as refused:
        run_command(arguments, configured)
    assert shown in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_setting_that_is_wrong_is_one_line_that_names_it() -> None:
    done = run("list", BECKON_MAX_EVENT_BYTES="many")
    assert done.returncode == 2
    assert "BECKON_MAX_EVENT_BYTES" in done.stderr
    assert "many" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_port_that_is_taken_is_one_line_and_exit_2() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("serve", "calculator", PORT=str(port))
    assert done.returncode == 2
    assert f"127.0.0.1:{port}" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_served_tool_answers_and_stops_cleanly_on_sigterm(author: Path) -> None:
    with serving("calculator", author) as (process, url):
        headers, body = to_binary(call("calculator", {"expression": "17% of 2340"}))
        response = httpx.post(url, headers=headers, content=body, timeout=PATIENCE)
        reply = from_http(response.headers.raw, response.content)
        assert reply.json() == {"expression": "17% of 2340", "result": "397.8", "exact": True}
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert [json.loads(line)["level"] for line in log.splitlines()] == ["INFO"] * len(log.splitlines())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_call_that_runs_when_the_signal_comes_is_answered(author: Path, number: int) -> None:
    marker, finish = author / "started", author / "finish"
    headers, body = to_binary(call("slow", {"marker": str(marker), "until": str(finish)}))
    with serving("my_tools:slow", author) as (process, url):
        async with httpx.AsyncClient(timeout=PATIENCE) as client:
            post = asyncio.create_task(client.post(url, headers=headers, content=body))
            await until(marker.exists)
            process.send_signal(number)
            await until(lambda: not accepts(url))
            finish.touch()
            response = await post
        assert from_http(response.headers.raw, response.content).json() == "finished"
        assert await asyncio.to_thread(process.wait, 10) == 0


@contextmanager
def running(script: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", script], cwd=folder)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def test_an_author_can_serve_a_tool_from_a_script(author: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    script = f"import beckon_tools, my_tools; beckon_tools.serve(my_tools.plain, port={port})"
    with running(script, author) as process:
        url = f"http://127.0.0.1:{port}"
        await until(lambda: accepts(url))
        headers, body = to_binary(call("plain"))
        async with httpx.AsyncClient(timeout=PATIENCE) as client:
            response = await client.post(url, headers=headers, content=body)
        assert from_http(response.headers.raw, response.content).json() == "at once"
        process.terminate()
        assert await asyncio.to_thread(process.wait, 10) == 0


def accepts(url: str) -> bool:
    host, _, port = url.removeprefix("http://").partition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except ConnectionError:
        return False
    return True
