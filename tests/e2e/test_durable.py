"""`beckon up --durable`: the NATS server that keeps the events is one of the supervised parts."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.agent.scripted_model import asks_for, says
from tests.e2e.conftest import EXAMPLES
from tests.e2e.local_platform import LocalPlatform, is_running, read_process_file
from tests.e2e.manifests import tool_manifests
from tests.e2e.model_thread import ModelThread
from tests.e2e.test_platform import SECONDS
from tests.nats_server import NatsServer, program
from tests.patience import wait_until

CALCULATOR = EXAMPLES / "calculator"


def with_nats() -> dict[str, str]:
    """Return the setting with which a platform finds the program."""
    return {"PATH": f"{program().parent}{os.pathsep}{os.environ['PATH']}"}


def nats_pid(platform: LocalPlatform) -> int:
    """Return the process of the platform's NATS server; 0 while there is none."""
    for pid in platform.children():
        if read_process_file(f"/proc/{pid}/comm").strip() == b"nats-server":
            return pid
    return 0


def calculate(platform: LocalPlatform) -> bool:
    """Whether a call through the broker is answered."""
    try:
        response = httpx.post(f"{platform.url}/tools/calculator", json={"expression": "6*7"}, timeout=30)
    except httpx.TransportError:
        return False
    return response.status_code == 200 and response.json()["result"]["result"] == "42"


def test_the_server_that_is_killed_comes_back_with_its_store(tmp_path: Path) -> None:
    platform = LocalPlatform(CALCULATOR, tmp_path, with_nats(), flags=["--durable"])
    try:
        platform.wait_until_ready()
        victim = nats_pid(platform)
        assert victim
        assert f"in NATS at nats://127.0.0.1:{platform.port + 5}, stored in .beckon/nats" in platform.text()

        os.kill(victim, signal.SIGKILL)

        wait_until(lambda: nats_pid(platform) not in (0, victim))
        wait_until(lambda: calculate(platform))
        successor = nats_pid(platform)
    finally:
        assert platform.stop() == 0

    assert not is_running(successor)
    assert "NATS server ended (signal 9); starting it again" in platform.text()


def test_a_platform_that_is_killed_leaves_its_folder_to_the_next_one(tmp_path: Path) -> None:
    first = LocalPlatform(CALCULATOR, tmp_path, with_nats(), flags=["--durable"])
    first.wait_until_ready()
    first.kill()

    second = LocalPlatform(CALCULATOR, tmp_path, with_nats(), flags=["--durable"])
    try:
        second.wait_until_ready()
        assert calculate(second)
    finally:
        assert second.stop() == 0


def test_a_server_that_cannot_use_its_store_ends_the_start_with_the_place_of_its_message(
    tmp_path: Path,
) -> None:
    (tmp_path / ".beckon" / "nats").mkdir(parents=True)
    (tmp_path / ".beckon" / "nats" / "jetstream").write_text("no folder")
    platform = LocalPlatform(CALCULATOR, tmp_path, with_nats(), flags=["--durable"])

    assert platform.process.wait(60) == 1
    last = platform.text().splitlines()[-1]
    assert last.startswith("beckon: the NATS server did not start (status 1); read its message above")
    assert last.endswith(", or in .beckon/nats/nats.log")


def test_a_server_that_is_named_is_used_and_none_is_started(tmp_path: Path, nats_server: NatsServer) -> None:
    settings = {"BECKON_NATS_URL": nats_server.url.replace("//", "//me:hunter2@")}
    platform = LocalPlatform(CALCULATOR, tmp_path, settings, flags=["--durable"])
    try:
        platform.wait_until_ready()

        assert nats_pid(platform) == 0
        assert f"events survive a restart: in NATS at {nats_server.url}\n" in platform.text()
        assert "hunter2" not in platform.text()
        assert not (tmp_path / ".beckon").exists()
    finally:
        assert platform.stop() == 0


@pytest.mark.parametrize("flags", [["--durable"], []])
def test_a_server_that_is_named_and_absent_is_reported_once(
    tmp_path: Path, unused_tcp_port: int, flags: list[str]
) -> None:
    absent = f"nats://127.0.0.1:{unused_tcp_port}"
    platform = LocalPlatform(CALCULATOR, tmp_path, {"BECKON_NATS_URL": absent}, flags=flags)
    try:
        wait_until(lambda: f"no answer from {absent}: the broker waits for NATS" in platform.text())
    finally:
        assert platform.stop() == 0


@pytest.mark.parametrize("killed", [("beckon_broker",), ("nats-server",), ("beckon_broker", "nats-server")])
def test_a_call_in_flight_ends_right_when_broker_and_server_are_killed(
    tmp_path: Path, model: ModelThread, killed: tuple[str, ...]
) -> None:
    manifests, begun = tmp_path / "manifests", tmp_path / "begun"
    manifests.mkdir()
    (manifests / "sleep.yaml").write_text(
        tool_manifests(
            "test-sleep",
            "Sleep.",
            SECONDS,
            command="python -m beckon_tools serve tests.e2e.tools:sleep",
            annotations={"beckon.dev/idempotent": "true"},
        )
    )
    model.play(asks_for(("test_sleep", {"seconds": 3, "begun": str(begun)})), says("it slept"))
    settings = {**with_nats(), "OPENAI_BASE_URL": model.base_url, "BECKON_MODEL": "scripted"}
    platform = LocalPlatform(manifests, tmp_path, settings, flags=["--durable"])
    question = {"model": "beckon", "messages": [{"role": "user", "content": "sleep"}]}
    try:
        platform.wait_until_ready()
        with ThreadPoolExecutor() as threads:
            answer = threads.submit(
                httpx.post, f"{platform.url}/v1/chat/completions", json=question, timeout=120
            )
            wait_until(begun.exists)
            for name in killed:
                os.kill(
                    nats_pid(platform) if name == "nats-server" else platform.pid_of(name), signal.SIGKILL
                )
            response = answer.result()
        (result,) = [m["content"] for m in model.bodies[-1]["messages"] if m["role"] == "tool"]
    finally:
        assert platform.stop() == 0

    assert response.json()["choices"][0]["message"]["content"] == "it slept"
    assert "slept 3 seconds" in result
    assert begun.read_text() == "begun\n"
