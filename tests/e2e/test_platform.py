"""The local platform as its user sees it: starts, follows manifests, survives, and leaves nothing."""

import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.command_server import run_module
from tests.e2e.conftest import EXAMPLES, Start, Workbench
from tests.e2e.local_platform import LocalPlatform, clean_environment, is_running, port_range
from tests.e2e.manifests import tool_manifests
from tests.patience import wait_until
from tests.shared_data import shared_data

SECONDS = {
    "type": "object",
    "properties": {"seconds": {"type": "number"}, "begun": {"type": "string"}},
    "required": ["seconds"],
}
SLEEP = tool_manifests(
    "test-sleep", "Sleep.", SECONDS, command="python -m beckon_tools serve tests.e2e.tools:sleep"
)
REPEATABLE_SLEEP = tool_manifests(
    "test-sleep",
    "Sleep.",
    SECONDS,
    command="python -m beckon_tools serve tests.e2e.tools:sleep",
    annotations={"beckon.dev/idempotent": "true"},
)


def beckon(
    *words: str, platform: LocalPlatform | None = None, **settings: str
) -> subprocess.CompletedProcess[str]:
    """Run `beckon` to its end."""
    if platform is not None:
        settings["BECKON_PORT"] = str(platform.port)
    return run_module("beckon_cli", *words, env=clean_environment(settings), cwd=EXAMPLES.parents[1])


def test_ctrl_c_ends_every_process_and_exits_with_zero(start_platform: Start) -> None:
    platform = start_platform()
    processes = platform.children()

    status = platform.stop()

    assert status == 0, platform.text()
    assert len(processes) == 6
    assert not [pid for pid in processes if is_running(pid)]
    assert "Traceback" not in platform.text()


def test_ctrl_c_while_it_starts_ends_what_was_started(tmp_path: Path) -> None:
    platform = LocalPlatform(EXAMPLES, tmp_path, {})
    wait_until(lambda: len(platform.children()) >= 3)
    processes = platform.children()

    status = platform.stop()

    assert status == 0, platform.text()
    assert not [pid for pid in processes if is_running(pid)]
    assert "Traceback" not in platform.text()


def test_a_platform_that_is_killed_takes_its_processes_with_it(start_platform: Start) -> None:
    platform = start_platform(EXAMPLES / "calculator")
    processes = platform.children()

    platform.kill()

    wait_until(lambda: not [pid for pid in processes if is_running(pid)])


def test_a_taken_port_is_one_clear_line(tmp_path: Path) -> None:
    port = port_range()
    with socket.create_server(("127.0.0.1", port)):
        ended = beckon("up", "--port", str(port), "--manifests", str(tmp_path))

    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert f"port {port} on 127.0.0.1 is taken" in ended.stderr
    assert ended.stdout == ""


def test_a_follower_port_that_is_taken_is_gone_round(tmp_path: Path) -> None:
    port = port_range()
    with socket.create_server(("127.0.0.1", port + 1)):
        platform = LocalPlatform(tmp_path, tmp_path, {}, port)
        try:
            platform.wait_until_ready()

            assert f"broker  http://127.0.0.1:{port + 2}" in platform.text()
        finally:
            assert platform.stop() == 0


def test_a_tool_added_while_running_is_called_and_gone_when_it_is_removed(workbench: Workbench) -> None:
    platform = workbench.platform
    assert platform.tool_names() == set()

    with workbench.tools("test_sleep", sleep=SLEEP):
        answer = beckon("call", "test_sleep", "seconds=0", platform=platform)

    assert answer.stdout == '"slept 0 seconds"\n', answer.stderr
    assert platform.tool_names() == set()


@pytest.mark.parametrize(
    ("manifests", "result"), [(REPEATABLE_SLEEP, "slept 1.5 seconds"), (SLEEP, "outcome_unknown")]
)
def test_a_call_outlives_the_kill_of_its_tool_if_it_may_be_repeated(
    workbench: Workbench, tmp_path: Path, manifests: str, result: str
) -> None:
    platform = workbench.platform
    begun = tmp_path / "begun"

    with workbench.tools("test_sleep", sleep=manifests), ThreadPoolExecutor() as pool:
        victim = platform.tool_pid("tests.e2e.tools:sleep")
        arguments = {"seconds": 1.5, "begun": str(begun)}
        answer = pool.submit(httpx.post, f"{platform.url}/tools/test_sleep", json=arguments, timeout=50)
        wait_until(begun.exists)
        os.kill(victim, signal.SIGKILL)

        assert result in answer.result().text
        wait_until(lambda: platform.tool_pid("tests.e2e.tools:sleep") not in (0, victim))


def test_the_manifests_of_knatives_blog_work_as_they_stand(workbench: Workbench) -> None:
    blog = {file.stem: file.read_text() for file in shared_data("examples").rglob("*.yaml")}

    with workbench.tools("get_current_weather", **blog):
        (tool,) = workbench.platform.tools()

    assert set(tool["parameters"]["properties"]) == {"location", "unit"}
    assert tool["triggers"] == ["get-current-weather"]


def test_ask_prints_the_answer_with_the_calls_that_led_to_it(platform: LocalPlatform) -> None:
    ended = beckon("ask", "What is 17% of 2340?", platform=platform)

    assert ended.returncode == 0, ended.stderr
    assert 'calculator(expression="17% of 2340")' in ended.stdout
    assert "397.8" in ended.stdout.splitlines()[-1]


def test_ask_starts_a_platform_of_its_own_and_ends_it() -> None:
    port = port_range()

    ended = beckon("ask", "What is 17% of 2340?", BECKON_PORT=str(port))

    assert ended.returncode == 0, ended.stderr
    assert "397.8" in ended.stdout
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_chat_reads_its_lines_from_a_pipe(platform: LocalPlatform) -> None:
    lines = "What is 2+2?\n/new\nWhat is 3*5?\n/quit\nnever\n"

    ended = subprocess.run(
        [sys.executable, "-m", "beckon_cli", "chat"],
        env=clean_environment({"BECKON_PORT": str(platform.port)}),
        input=lines,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    assert "15" in ended.stdout
    assert "never" not in ended.stdout


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["call", "calculator", "expression=2+3"], 0, ""),
        (["call", "calculator", "expresion=2+3"], 1, "expression"),
        (["call", "calculator", "nonsense"], 2, "key=value"),
        (["call", "no_such_tool"], 1, "see: beckon tools"),
        (["call", "calculater"], 1, "there is no tool 'calculater'; did you mean calculator?"),
        (["call", "../healthz"], 1, "healthz"),
        (["call", "calculator", "expression=123456789012345678901234567890"], 0, ""),
    ],
)
def test_call_shows_success_and_failure_by_its_status(
    platform: LocalPlatform, words: list[str], status: int, said: str
) -> None:
    ended = beckon(*words, platform=platform)

    assert ended.returncode == status
    assert said in ended.stderr
    assert ended.stderr.count("\n") == (1 if status else 0)
