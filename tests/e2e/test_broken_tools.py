"""Tools that do not start, or never answer, trouble nobody but those who call them."""

from pathlib import Path

import pytest

from tests.e2e.conftest import Start
from tests.e2e.local_platform import LocalPlatform
from tests.e2e.manifests import tool_manifests
from tests.e2e.test_platform import SLEEP, beckon
from tests.patience import wait_until


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three tools that each go wrong in their own way."""
    folder = tmp_path_factory.mktemp("broken")
    commands = {"missing": "no-such-command x", "unclosed": 'echo "unclosed', "silent": "sleep 1000"}
    for name, command in commands.items():
        (folder / f"{name}.yaml").write_text(tool_manifests(f"test-{name}", "Broken.", {}, command=command))
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


def test_a_tool_that_cannot_be_started_is_not_offered(platform: LocalPlatform) -> None:
    wait_until(lambda: platform.tool_names() <= {"test_silent", "test_sleep"})


def test_a_good_tool_beside_them_is_started_and_called(platform: LocalPlatform, folder: Path) -> None:
    (folder / "sleep.yaml").write_text(SLEEP)
    wait_until(lambda: "test_sleep" in platform.tool_names())

    answer = beckon("call", "test_sleep", "seconds=0", platform=platform)

    assert answer.stdout == '"slept 0 seconds"\n', answer.stderr
