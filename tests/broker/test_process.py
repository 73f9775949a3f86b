import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from beckon_contract.cloudevents.events import to_binary
from tests.broker.broker_process import delivery, event, trigger, write_manifests
from tests.broker.subscribers import Gate, subscriber
from tests.patience import PATIENCE


@asynccontextmanager
async def broker_process(folder: Path, **environment: str) -> AsyncIterator[Process]:
    """Start `python -m beckon_broker` as a user would; kill it if the test leaves it running."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("BECKON_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "beckon_broker",
        env={**inherited, "BECKON_MANIFESTS": str(folder), **environment},
        cwd=folder,
        stderr=PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def wait_until_listening(process: Process) -> str:
    """Return the URL that the process says it listens on."""
    assert process.stderr is not None
    async with asyncio.timeout(PATIENCE):
        async for line in process.stderr:
            _, found, rest = line.decode().partition("listening on ")
            if found:
                return rest.split(";")[0]
    raise AssertionError("the broker ended before it listened")


async def rest_of(process: Process) -> str:
    """Wait for the end of a process and return what it still had to say."""
    async with asyncio.timeout(PATIENCE):
        _, errors = await process.communicate()
    return errors.decode()


async def post(url: str, name: str = "e1", path: str = "/default/default", **extensions: str) -> int:
    headers, body = to_binary(event(name).extended(**extensions))
    async with (
        aiohttp.ClientSession() as session,
        session.post(url + path, data=body, headers=headers) as answer,
    ):
        return answer.status


async def get(url: str) -> int:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status


async def test_it_serves_within_a_bounded_wait_and_stops_with_code_0(tmp_path: Path) -> None:
    async with subscriber() as tool:
        write_manifests(tmp_path, trigger("t", tool.url))
        async with broker_process(tmp_path, BECKON_PORT="0") as process:
            url = await wait_until_listening(process)
            status = await post(url)
            await tool.wait()
            process.send_signal(signal.SIGTERM)
            said = await rest_of(process)

    assert status == 202
    assert process.returncode == 0
    assert "no event is lost" in said
    assert "Traceback" not in said


async def test_sigterm_refuses_new_events_and_finishes_those_accepted(tmp_path: Path) -> None:
    held = Gate()
    async with subscriber(held) as tool:
        write_manifests(tmp_path, trigger("t", tool.url))
        environment = {
            "BECKON_PORT": "0",
            "BECKON_BROKER_CONCURRENCY": "1",
            "BECKON_DRAIN_SECONDS": "5",
        }
        async with broker_process(tmp_path, **environment) as process:
            url = await wait_until_listening(process)
            for number in range(3):
                assert await post(url, f"e{number}") == 202
            await tool.wait(1)
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(PATIENCE):
                while (late := await post(url, "late")) == 202:
                    pass
            ready = await get(url + "/readyz")
            held.open()
            said = await rest_of(process)

    assert (late, ready) == (503, 503)
    assert process.returncode == 0
    assert {"e0", "e1", "e2"} <= {each.id for each in tool.events}
    assert "no event is lost" in said


async def test_what_cannot_be_delivered_in_time_is_counted_as_lost(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nowhere = f"http://127.0.0.1:{closed.getsockname()[1]}/"
    write_manifests(tmp_path, trigger("t", nowhere, delivery=delivery(5, backoffDelay="PT1H")))
    environment = {"BECKON_PORT": "0", "BECKON_DRAIN_SECONDS": "0.1"}
    async with broker_process(tmp_path, **environment) as process:
        url = await wait_until_listening(process)
        for number in range(4):
            assert await post(url, f"e{number}") == 202
        process.send_signal(signal.SIGTERM)
        said = await rest_of(process)

    assert process.returncode == 0
    assert "queued events lost, as they were in memory only: 4" in said


async def test_a_second_signal_stops_without_draining(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nowhere = f"http://127.0.0.1:{closed.getsockname()[1]}/"
    write_manifests(tmp_path, trigger("t", nowhere, delivery=delivery(5, backoffDelay="PT1H")))
    environment = {"BECKON_PORT": "0", "BECKON_DRAIN_SECONDS": "3600"}
    async with broker_process(tmp_path, **environment) as process:
        url = await wait_until_listening(process)
        await post(url)
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(PATIENCE):
            while await post(url, "late") == 202:
                pass
        process.send_signal(signal.SIGINT)
        said = await rest_of(process)

    assert process.returncode == 0
    assert "queued events lost" in said


async def test_a_taken_port_gives_one_clear_line_and_code_2(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        async with broker_process(tmp_path, BECKON_PORT=port) as process:
            said = await rest_of(process)

    assert process.returncode == 2
    assert len(said.splitlines()) == 1
    assert port in said
    assert "BECKON_PORT" in said


async def test_wrong_settings_give_one_line_and_code_2(tmp_path: Path) -> None:
    environment = {"BECKON_MANIFESTS": str(tmp_path / "missing"), "BECKON_PORT": "many"}
    async with broker_process(tmp_path, **environment) as process:
        said = await rest_of(process)

    assert process.returncode == 2
    assert len(said.splitlines()) == 1
    assert "BECKON_PORT" in said
    assert str(tmp_path / "missing") in said
    assert "BECKON_MANIFESTS" in said


async def test_a_file_without_ca_certificates_is_named(tmp_path: Path) -> None:
    async with broker_process(tmp_path, BECKON_NATS_CA=str(tmp_path / "ca.crt")) as process:
        said = await rest_of(process)

    assert process.returncode == 2
    assert "BECKON_NATS_CA" in said
    assert "ca.crt has no CA certificates that can be read: No such file" in said
