"""What the local platform withstands: signals, the loss of any process, edits while it runs."""

import os
import pty
import secrets
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.e2e.conftest import EXAMPLES, Start
from tests.e2e.local_platform import LocalPlatform, clean_environment, is_running, port_range
from tests.patience import PATIENCE, wait_until

CALCULATOR = EXAMPLES / "calculator"
OTHER = """
apiVersion: eventing.knative.dev/v1beta3
kind: EventType
metadata: {name: calculator, namespace: other}
spec:
  description: Another tool of the same name.
  reference: {apiVersion: eventing.knative.dev/v1, kind: Broker, name: second}
  attributes:
  - {name: type, required: true, value: test.sleep}
  - {name: schemadata, value: "data:application/json,%7B%22seconds%22%3A%7B%22type%22%3A%22number%22%7D%7D"}
---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: calculator, namespace: other}
spec:
  broker: second
  filters: [{exact: {type: test.sleep}}]
  subscriber:
    ref: {apiVersion: v1, kind: Service, name: sleeper, namespace: other}
---
apiVersion: v1
kind: Service
metadata:
  name: sleeper
  namespace: other
  annotations: {beckon.dev/local-command: python -m beckon_tools serve tests.e2e.tools:sleep}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of its own with the calculator, whose name has a blank and letters beyond ASCII."""
    folder = tmp_path_factory.mktemp("Ordner für später 日本")
    for file in CALCULATOR.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


@pytest.fixture(scope="module")
def running(start_platform: Start, folder: Path) -> LocalPlatform:
    """A platform on that folder, which knows no home folder."""
    return start_platform(folder, HOME="")


def calculate(platform: LocalPlatform) -> object:
    """Return what the calculator says, through the Broker."""
    try:
        response = httpx.post(f"{platform.url}/tools/calculator", json={"expression": "6*7"}, timeout=30)
    except httpx.TransportError:
        return None
    return response.json().get("result", {}).get("result") if response.status_code == 200 else None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_polite_signal_ends_all_of_it_with_zero(tmp_path: Path, number: signal.Signals) -> None:
    platform = LocalPlatform(tmp_path, tmp_path, {})
    platform.wait_until_ready()
    processes = platform.children()

    platform.process.send_signal(number)

    assert platform.process.wait(30) == 0, platform.text()
    assert len(processes) >= 4
    assert not [pid for pid in processes if is_running(pid)]


@pytest.mark.parametrize("module", ["beckon_broker", "beckon_shim", "beckon_agent", "beckon_demo"])
def test_a_part_that_is_killed_comes_back_and_calls_are_answered_again(
    running: LocalPlatform, module: str
) -> None:
    victim = running.pid_of(module)

    assert victim
    os.kill(victim, signal.SIGKILL)

    wait_until(lambda: not is_running(victim))
    wait_until(lambda: calculate(running) == "42")
    wait_until(lambda: running.pid_of(module))


def test_the_process_of_the_shipped_tools_comes_back_and_the_others_do_not_notice(
    start_platform: Start,
) -> None:
    keys = secrets.token_hex(32)
    platform = start_platform(EXAMPLES, BECKON_SHIM_KEYS=keys, BECKON_STORE="sqlite:///:memory:")
    victim = platform.pid_of("beckon_cli.local.group")
    others = set(platform.children()) - {victim}
    assert len(others) == 5

    for pid in (victim, platform.pid_of("beckon_adapter")):
        inherited = Path(f"/proc/{pid}/environ").read_bytes()
        assert keys.encode() not in inherited
        assert b"BECKON_STORE" not in inherited
    os.kill(victim, signal.SIGKILL)

    wait_until(lambda: not is_running(victim))
    wait_until(lambda: calculate(platform) == "42")
    assert platform.pid_of("beckon_cli.local.group") != victim
    assert others <= set(platform.children())


def test_a_shipped_tool_that_is_added_or_removed_changes_no_address_of_the_others(
    start_platform: Start, tmp_path: Path
) -> None:
    for name in ("calculator", "sql"):
        shutil.copytree(EXAMPLES / name, tmp_path / name)
    platform = start_platform(tmp_path)
    group = platform.pid_of("beckon_cli.local.group")
    assert group

    shutil.copytree(EXAMPLES / "current-time", tmp_path / "current-time")
    wait_until(lambda: "current_time" in platform.tool_names())
    wait_until(lambda: calculate(platform) == "42")
    assert platform.pid_of("beckon_cli.local.group") not in (0, group)
    shutil.rmtree(tmp_path / "sql")
    wait_until(lambda: platform.tool_names() == {"calculator", "current_time"})
    assert calculate(platform) == "42"


def test_a_forked_service_has_nothing_of_its_parent_but_the_memory(
    start_platform: Start, folder: Path
) -> None:
    running = start_platform(folder)
    demo = running.pid_of("beckon_demo")
    status = dict(
        line.split(":\t", 1)
        for line in Path(f"/proc/{demo}/status").read_text().splitlines()
        if ":\t" in line
    )
    own_files = {file.readlink() for file in Path(f"/proc/{demo}/fd").iterdir()}
    parents = {file.readlink() for file in Path(f"/proc/{running.process.pid}/fd").iterdir()}

    assert os.getsid(demo) == demo
    assert int(status["SigBlk"], 16) == 0
    shared = {str(file) for file in own_files & parents if not str(file).startswith("anon_inode:")}
    assert shared == {"/dev/null", str(running.output)}  # no socket and no pipe, which have numbers


def test_brokers_of_other_namespaces_have_tools_of_their_own(running: LocalPlatform, folder: Path) -> None:
    (folder / "other.yaml").write_text(OTHER)
    try:
        wait_until(lambda: len(running.tools()) == 2)
        own, other = sorted(running.tools(), key=lambda tool: str(tool["namespace"]))
        assert own["name"] != other["name"]
        assert (own["broker"], other["broker"]) == ("default", "second")
        slept = httpx.post(f"{running.url}/tools/{other['name']}", json={"seconds": 0}, timeout=PATIENCE)
        assert slept.json()["result"] == "slept 0 seconds"
    finally:
        (folder / "other.yaml").unlink()
    wait_until(lambda: running.tool_names() == {"calculator"})


def test_a_trigger_that_stops_routing_takes_its_tool_away_until_it_routes_again(
    running: LocalPlatform, folder: Path
) -> None:
    trigger = folder / "trigger.yaml"
    text = trigger.read_text()

    trigger.write_text(text.replace("type: calculator", "type: calculator.of.old"))
    wait_until(lambda: running.tool_names() == set())
    trigger.write_text(text)

    wait_until(lambda: running.tool_names() == {"calculator"})
    assert calculate(running) == "42"  # what is offered can be called, however much later the broker reads


def test_a_broken_edit_changes_nothing_and_is_shown_until_it_is_mended(
    running: LocalPlatform, folder: Path
) -> None:
    manifest = folder / "eventtype.yaml"
    text = manifest.read_text()

    manifest.write_text(text + "\n  - [unclosed")
    try:
        wait_until(lambda: httpx.get(f"{running.url}/tools", timeout=PATIENCE).json()["refused"])
        assert running.tool_names() == {"calculator"}
        assert calculate(running) == "42"
    finally:
        manifest.write_text(text)

    wait_until(lambda: not httpx.get(f"{running.url}/tools", timeout=PATIENCE).json()["refused"])


def test_flags_win_over_the_environment_and_that_over_the_env_file(tmp_path: Path) -> None:
    port = port_range()
    settings = {
        "BECKON_PORT": "1",
        "BECKON_MANIFESTS": "nowhere",
        "BECKON_DIALECT": "prompted",
        "BECKON_MAX_REQUEST_BYTES": "2000",
    }
    lines = [f"{name}={value}" for name, value in settings.items()]
    (tmp_path / ".env").write_text("\n".join([*lines, "OPENAI_API_KEY=sk-from-the-file"]))
    (tmp_path / "manifests").mkdir()
    words = [sys.executable, "-m", "beckon_cli", "up", "--port", str(port)]
    environment = clean_environment({"BECKON_MANIFESTS": "manifests"})
    process = subprocess.Popen(words, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        shown = ""
        while "Ctrl-C stops" not in shown:
            line = process.stdout.readline()
            assert line, shown
            shown += line

        ready = httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=PATIENCE).json()
        long = httpx.post(f"http://127.0.0.1:{port}/tools/any", json={"text": "x" * 2000}, timeout=PATIENCE)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)

    assert "from manifests" in shown
    assert "prompted" in ready["model"]
    assert long.status_code == 413


def test_the_agent_alone_listens_where_it_is_reported_and_says_who_may_come(tmp_path: Path) -> None:
    platform = LocalPlatform(tmp_path, tmp_path, {"BECKON_HOST": "::1"})
    try:
        platform.wait_until_ready()

        assert httpx.get(f"http://[::1]:{platform.port}/healthz", timeout=PATIENCE).status_code == 200
        assert f"http://[::1]:{platform.port}/v1" in platform.text()
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"http://127.0.0.1:{platform.port}/healthz", timeout=PATIENCE)
    finally:
        assert platform.stop() == 0


def test_findings_are_coloured_on_a_terminal_and_plain_in_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "mistake.yaml").write_text("kind: Nonsense\n")
    words = [sys.executable, "-m", "beckon_cli", "check", str(tmp_path)]
    environment = clean_environment({"TERM": "xterm-256color"})
    environment.pop("NO_COLOR", None)
    master, terminal = pty.openpty()
    try:
        on_terminal = subprocess.run(words, env=environment, stdout=terminal, check=False, timeout=30)
        coloured = os.read(master, 65_536)
    finally:
        os.close(terminal)
        os.close(master)

    piped = subprocess.run(words, env=environment, capture_output=True, check=False, timeout=30)

    assert (on_terminal.returncode, piped.returncode) == (1, 1)
    assert b"\x1b[" in coloured
    assert b"\x1b[" not in piped.stdout
