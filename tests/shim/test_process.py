"""The shim as it really runs: a process that gets settings and signals."""

import asyncio
import contextlib
import os
import re
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from beckon_contract.correlation import Keyring, SigningKey, sign_request, verify
from beckon_shim.__main__ import main
from beckon_shim.service import WaitTimes
from beckon_shim.settings import Settings
from tests.patience import PATIENCE, eventually, until
from tests.shim.support import CALL, KEY, Posted, Server, reply_headers, shim_in_front_of, waiting_call


@dataclass(slots=True)
class Process:
    child: asyncio.subprocess.Process
    url: str
    replies: str

    async def call(self, client: aiohttp.ClientSession) -> int:
        path, raw = "/default/main", [(name.encode(), value.encode()) for name, value in CALL.items()]
        signed = sign_request(Keyring.parse(KEY), path, raw, b"{}", time.time())
        headers = {**CALL, "authorization": signed}
        async with client.post(self.url + path, headers=headers, data=b"{}") as answer:
            await answer.read()
            return answer.status

    async def reply(self, client: aiohttp.ClientSession, token: str) -> int:
        async with client.post(self.replies + "/replies", headers=reply_headers(token), data=b"1") as answer:
            return answer.status


def variable(setting: str) -> str:
    """Return the environment's name of a setting."""
    return str(Settings.model_fields[setting].validation_alias or f"BECKON_SHIM_{setting.upper()}")


async def start(**settings: str) -> asyncio.subprocess.Process:
    environment = {variable(name): value for name, value in settings.items()}
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "beckon_shim",
        env={**os.environ, **environment},
        stderr=asyncio.subprocess.PIPE,
    )


@contextlib.asynccontextmanager
async def running(broker: Server, **settings: str) -> AsyncIterator[Process]:
    child = await start(
        broker_url=broker.url + "/{namespace}/{name}", port="0", reply_port="0", **{"keys": KEY, **settings}
    )
    assert child.stderr is not None
    try:
        line = ""
        while "takes calls on" not in line:
            line = (await asyncio.wait_for(child.stderr.readline(), PATIENCE)).decode()
            assert line, "it did not start"
        url, replies = re.findall(r"http://127\.0\.0\.1:\d+", line)[:2]
        yield Process(child, url, replies)
    finally:
        if child.returncode is None:
            child.kill()
        # Reading to the end lets the pipe be closed with the process.
        await child.communicate()


async def ready(client: aiohttp.ClientSession, url: str) -> int:
    async with client.get(url + "/readyz") as answer:
        return answer.status


async def until_refused(client: aiohttp.ClientSession, url: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while await ready(client, url) == 200:  # noqa: ASYNC110 - another process has no event to wait for
            await asyncio.sleep(0.01)


async def test_on_sigterm_it_drains_and_exits_0(broker: Server) -> None:
    async with running(broker) as shim, aiohttp.ClientSession() as client:
        assert await ready(client, shim.url) == 200
        waiting = asyncio.create_task(shim.call(client))
        await until(lambda: len(broker.posts) == 1)
        shim.child.send_signal(signal.SIGTERM)
        await until_refused(client, shim.url)
        assert await ready(client, shim.replies) == 503
        assert await shim.call(client) == 503
        assert await shim.reply(client, broker.posts[0].token) == 202
        assert await waiting == 200
        assert await asyncio.wait_for(shim.child.wait(), PATIENCE) == 0


async def test_what_was_posted_and_still_waits_when_draining_ends_has_an_unknown_outcome(
    broker: Server,
) -> None:
    async with running(broker, drain_seconds="0.1") as shim, aiohttp.ClientSession() as client:
        waiting = asyncio.create_task(shim.call(client))
        await until(lambda: len(broker.posts) == 1)
        shim.child.send_signal(signal.SIGTERM)
        assert await waiting == 502  # 503 would say that it may be posted again
        assert await asyncio.wait_for(shim.child.wait(), PATIENCE) == 0


async def test_keys_may_come_from_a_file(broker: Server, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"{KEY}\n{'00' * 16}\n")
    keys = Keyring([SigningKey.parse(KEY)])
    async with running(broker, keys="", keys_file=str(file)) as shim, aiohttp.ClientSession() as client:
        waiting = asyncio.create_task(shim.call(client))
        await until(lambda: len(broker.posts) == 1)
        assert verify(keys, broker.posts[0].token) is not None
        assert await shim.reply(client, broker.posts[0].token) == 202
        assert await waiting == 200


def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **settings: str) -> str:
    """Start with bad settings; return the one line that is said, with exit status 2."""
    for name, value in settings.items():
        monkeypatch.setenv(variable(name), value)
    assert main() == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    return lines[0]


def test_a_taken_port_is_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused(monkeypatch, capsys, port=str(port), keys=KEY)
    assert f"cannot listen on 127.0.0.1:{port}" in line
    assert "BECKON_PORT" in line


@pytest.mark.parametrize(
    ("name", "value", "word"),
    [
        ("port", "eighty", "BECKON_PORT"),
        ("broker_url", "broker:8081", "HTTP URL"),
        ("broker_url", "http://x/{ns}", "placeholders"),
        ("keys", "short", "openssl rand"),
        ("keys", "00112233", "16 bytes"),
        ("keys", "0123456789abcdef0123456789abcdef!", "neither"),
        ("keys_file", "/nonexistent/keys", "/nonexistent/keys"),
        ("replica", "Not A Label", "DNS label"),
        ("peers", "shim-1", "<replica>=<URL>"),
        ("reply_attribute", "correlationid", "must differ"),
        ("correlation_attribute", "subject", "CloudEvents itself"),
        ("brokers", "guess", "'template' or 'cluster'"),
        ("pod_ip", "10.244.0", "10.244.0"),
        ("service_account", "shim", "pod_namespace"),
    ],
)
def test_a_bad_setting_is_one_clear_line_without_secrets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str, word: str
) -> None:
    line = refused(monkeypatch, capsys, **{name: value})
    assert word in line
    assert "0123456789abcdef" not in line


def test_what_kubernetes_shows_of_a_service_of_the_same_name_is_no_port(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BECKON_PORT", "tcp://10.96.0.7:80")
    assert Settings().port == 8082


def test_a_cluster_that_cannot_be_found_is_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nonexistent/config")
    line = refused(monkeypatch, capsys, brokers="cluster", keys=KEY)
    assert "/nonexistent/config" in line
    assert "set KUBECONFIG to a kubeconfig (BECKON_SHIM_BROKERS=cluster)" in line


def test_without_keys_it_starts_only_where_calls_are_open(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused(monkeypatch, capsys, keys="", port="0", reply_port="0")
    assert "no keys are set" in line
    assert "BECKON_SHIM_OPEN_CALLS=true" in line


async def test_no_keys_are_said_aloud_and_ctrl_c_exits_0(broker: Server) -> None:
    child = await start(broker_url=broker.url, port="0", reply_port="0", keys="", open_calls="true")
    assert child.stderr is not None
    try:
        first = (await asyncio.wait_for(child.stderr.readline(), PATIENCE)).decode()
        assert "no keys are set" in first
        await asyncio.wait_for(child.stderr.readline(), PATIENCE)
        child.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(child.wait(), PATIENCE) == 0
    finally:
        if child.returncode is None:
            child.kill()
        await child.communicate()


async def test_a_replica_that_leaves_is_unready_at_once_and_takes_calls_for_a_while(broker: Server) -> None:
    async with shim_in_front_of(
        broker.url, leave_seconds=3, drain_seconds=20, waits=WaitTimes(without_preference=20)
    ) as shim:

        async def reply(posted: Posted) -> None:
            assert await shim.reply(posted.token, b"done") == 202

        broker.behaviour = reply
        assert "connection" not in (await shim.call())[1]
        shim.stop.set()

        async def is_unready() -> bool:
            async with shim.client.get(shim.url + "/readyz") as answer:
                return answer.status == 503

        await eventually(is_unready)
        status, headers, body = await shim.call()
        assert (status, body, headers["connection"]) == (200, b"done", "close")
        broker.behaviour = None
        waiting = await waiting_call(shim, broker)

        async def is_draining() -> bool:
            return (await shim.call(prefer="wait=0.01"))[0] == 503

        await eventually(is_draining)
        assert await shim.reply(broker.posts[2].token, b"late, and heard") == 202
        assert await waiting == (200, b"late, and heard")
