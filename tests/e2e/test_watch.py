"""Tools are restarted when their code or their local command changes."""

from pathlib import Path

import httpx
import pytest

from tests.e2e.conftest import Start
from tests.e2e.local_platform import ROOT, LocalPlatform
from tests.e2e.manifests import tool_manifests
from tests.patience import PATIENCE, wait_until

CODE = """
from beckon_tools import tool

@tool(type="test.greet")
async def greet() -> str:
    \"\"\"Return a greeting.\"\"\"
    return {greeting!r}
"""


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """The module of a tool."""
    file = tmp_path / "code" / "greeting.py"
    file.parent.mkdir()
    file.write_text(CODE.format(greeting="hello"))
    return file


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    """A folder with the tool's manifests."""
    folder = tmp_path / "manifests"
    folder.mkdir()
    (folder / "greet.yaml").write_text(greet_manifests())
    return folder


def greet_manifests(option: str = "") -> str:
    """Return the manifests of the tool, with an option of Python in its command."""
    command = f"python {option} -m beckon_tools serve greeting:greet"
    return tool_manifests("test-greet", "Greet.", {}, command=command)


def call(platform: LocalPlatform) -> str:
    """Return the greeting, or what a failed call says."""
    answer = httpx.post(f"{platform.url}/tools/test_greet", json={}, timeout=PATIENCE).json()
    return str(answer.get("result") or answer)


def test_a_tool_is_restarted_when_its_code_changes_and_broken_code_prints_its_traceback_once(
    start_platform: Start, manifests: Path, code: Path
) -> None:
    platform = start_platform(manifests, PYTHONPATH=f"{ROOT}:{code.parent}")
    assert call(platform) == "hello"

    code.write_text(CODE.format(greeting="good day"))
    wait_until(lambda: call(platform) == "good day")
    assert platform.text().count("restarting test-greet: greeting.py changed") == 1

    code.write_text("raise RuntimeError('half written')")
    wait_until(lambda: "default/test-greet does not start; read its message above" in platform.text())
    assert platform.text().count("RuntimeError: half written") == 1
    wait_until(lambda: platform.tool_names() == set())

    code.write_text(CODE.format(greeting="good evening"))
    wait_until(lambda: platform.tool_names() == {"test_greet"})
    assert call(platform) == "good evening"


def test_a_tool_is_restarted_when_its_command_changes(
    start_platform: Start, manifests: Path, code: Path
) -> None:
    platform = start_platform(manifests, PYTHONPATH=f"{ROOT}:{code.parent}")
    before = platform.tool_pid("greeting:greet")

    (manifests / "greet.yaml").write_text(greet_manifests("-B"))

    wait_until(lambda: "restarting test-greet: its manifest has changed" in platform.text())
    wait_until(lambda: before not in platform.children())  # it finishes its calls first
    wait_until(lambda: call(platform) == "hello")


def test_without_watching_a_tool_runs_on_when_its_code_changes(
    tmp_path: Path, manifests: Path, code: Path
) -> None:
    settings = {"PYTHONPATH": f"{ROOT}:{code.parent}"}
    platform = LocalPlatform(manifests, tmp_path, settings, flags=["--no-watch"])
    try:
        platform.wait_until_ready()
        before = platform.tool_pid("greeting:greet")

        code.write_text(CODE.format(greeting="good day"))
        (manifests / "greet.yaml").write_text(greet_manifests().replace("Greet.", "Greet again."))
        wait_until(lambda: [tool["description"] for tool in platform.tools()] == ["Greet again."])

        assert call(platform) == "hello"
        assert platform.tool_pid("greeting:greet") == before
    finally:
        platform.stop()
