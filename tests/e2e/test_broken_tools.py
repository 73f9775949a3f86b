"""Tools that do not start, or never answer, trouble no one but those who call them."""

import sys
from pathlib import Path

import httpx
import pytest

from tests.e2e.conftest import Start, Workbench
from tests.e2e.local_platform import LocalPlatform
from tests.e2e.manifests import tool_manifests
from tests.e2e.test_platform import SECONDS, SLEEP, beckon
from tests.patience import PATIENCE, wait_until


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three tools that each go wrong in their own way."""
    folder = tmp_path_factory.mktemp("broken")
    commands = {"missing": "no-such-command x", "unclosed": 'echo "unclosed', "silent": "sleep 1000"}
    for name, command in commands.items():
        (folder / f"{name}.yaml").write_text(tool_manifests(f"test-{name}", "Broken.", {}, command=command))
    refused = tool_manifests(
        "test-refused", "Refused.", {}, url="http://127.0.0.1:9", annotations={"beckon.dev/parameters": "{"}
    )
    (folder / "refused.yaml").write_text(refused)
    (folder / "unclosed.json").write_text('{"kind": ')
    return folder


@pytest.fixture(scope="module")
def platform(start_platform: Start, folder: Path) -> LocalPlatform:
    """A platform that was started with them."""
    return start_platform(folder)


def test_each_broken_tool_is_named_with_its_cause(platform: LocalPlatform) -> None:
    said = platform.text()

    assert "test-missing: cannot run no-such-command: No such file or directory" in said
    assert "nothing serves default/test-unclosed here: its annotation beckon.dev/local-command" in said
    assert "no answer yet from: test-silent" in said
    assert "Traceback" not in said


def test_a_file_that_cannot_be_read_is_reported_once_of_all_processes_that_read_it(
    platform: LocalPlatform,
) -> None:
    assert platform.text().count("unclosed.json") == 1


def test_a_tool_that_cannot_be_started_is_not_offered(platform: LocalPlatform) -> None:
    wait_until(lambda: platform.tool_names() <= {"test_sleep"})


@pytest.mark.parametrize(
    ("tool", "reasons"),
    [
        ("test_refused", ("test.refused is refused", "refused.yaml", "NotJson", "write the JSON Schema in")),
        ("test.refused", ("test.refused is refused",)),
        ("test_silent", ("test.silent is refused", "TriggerNotReady")),
        ("test_other", ("there is no tool test_other", "unclosed.json: not YAML")),
    ],
)
def test_a_call_of_a_tool_that_is_not_offered_gets_the_reason(
    platform: LocalPlatform, tool: str, reasons: tuple[str, ...]
) -> None:
    ended = beckon("call", tool, platform=platform)

    assert ended.returncode == 1
    assert [reason for reason in reasons if reason not in ended.stderr] == []
    assert ended.stderr.count("\n") == 1


def test_a_good_tool_beside_them_is_started_and_called(platform: LocalPlatform, folder: Path) -> None:
    (folder / "sleep.yaml").write_text(SLEEP)
    wait_until(lambda: "test_sleep" in platform.tool_names())

    answer = beckon("call", "test_sleep", "seconds=0", platform=platform)

    assert answer.stdout == '"slept 0 seconds"\n', answer.stderr


SLOW = """
import runpy, sys, time

begun = time.monotonic()
while time.monotonic() - begun < {seconds}:
    turn = time.process_time()
    while time.process_time() - turn < 0.03:
        pass
    time.sleep(0.07)
sys.argv = ["beckon_tools", "serve", "tests.e2e.tools:sleep"]
runpy.run_module("beckon_tools", run_name="__main__")
"""


def slow_tool(work: Path, seconds: float) -> str:
    """Return the manifests of a tool whose process works for seconds before it listens."""
    program = work / "slow.py"
    program.write_text(SLOW.format(seconds=seconds))
    return tool_manifests("test-sleep", "Sleep.", SECONDS, command=f"{sys.executable} {program}")


def test_a_start_waits_for_a_tool_as_long_as_it_makes_progress(start_platform: Start, tmp_path: Path) -> None:
    (tmp_path / "slow.yaml").write_text(slow_tool(tmp_path, 10))

    platform = start_platform(tmp_path)

    assert "no answer yet" not in platform.text()
    assert "tools   test-sleep" in platform.text()
    assert platform.tool_names() == {"test_sleep"}


def test_a_tool_is_offered_only_when_it_answers(workbench: Workbench, tmp_path: Path) -> None:
    manifests = slow_tool(tmp_path, 7)  # longer than a Broker tries to deliver a call
    url = f"{workbench.platform.url}/tools/test_sleep"

    with workbench.tools("test_sleep", slow=manifests):
        answer = httpx.post(url, json={"seconds": 0}, timeout=PATIENCE)

    assert answer.json().get("result") == "slept 0 seconds", answer.text


def test_an_edit_that_takes_a_tool_away_is_reported_once_on_the_terminal(
    start_platform: Start, tmp_path: Path
) -> None:
    file = tmp_path / "sleep.yaml"
    file.write_text(SLEEP)
    platform = start_platform(tmp_path)

    file.write_text(tool_manifests("test-sleep", "Sleep.", {}, annotations={"beckon.dev/parameters": "{"}))
    wait_until(lambda: "no longer offered" in platform.text() and platform.tool_names() == set())
    file.write_text("kind: [")
    wait_until(lambda: "not YAML" in platform.text())

    (line,) = [line for line in platform.text().splitlines() if "no longer offered" in line]
    assert f"EventType default/test.sleep ({file}, line " in line
    assert "write the JSON Schema in annotation beckon.dev/parameters" in line
    (line,) = [line for line in platform.text().splitlines() if "not YAML" in line]
    assert line.endswith("what it last held stays in force")
    assert '"message"' not in platform.text()
