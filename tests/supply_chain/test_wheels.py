"""The wheels: the same bytes twice, and all that a user needs who has no checkout."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from supply_chain.packages import distribution_of
from supply_chain.release import BadRelease, current_version
from supply_chain.sbom import ROOMS
from supply_chain.wheels import build_wheels, digest_of, pin_version
from tests.docs.blocks import ROOT, commands_of
from tests.e2e.local_platform import LocalPlatform

README = ROOT / "README.md"
UV = ROOT / ".uv" / "bin" / "uv"
VERSION = "0.2.7"
SECONDS = 120
STARTS = [command for command in commands_of(README, "release") if command.startswith("uvx ")]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return build_wheels(tmp_path_factory.mktemp("wheels"), VERSION)


@pytest.fixture(scope="module")
def unreleased(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return build_wheels(tmp_path_factory.mktemp("unreleased"))


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the name is the base class's
        """Log nothing."""


@pytest.fixture(scope="module")
def index(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an index of packages (PEP 503) that has the wheels."""
    folder = tmp_path_factory.mktemp("index")
    for wheel in wheels:
        project = folder / wheel.name.partition("-")[0].replace("_", "-")
        project.mkdir()
        (project / wheel.name).symlink_to(wheel)
        (project / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>', encoding="utf-8")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_QuietHandler, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


class Installed:
    """An environment with `beckon-cli` and nothing of this checkout, and an empty folder to work in."""

    def __init__(self, folder: Path, index: str) -> None:
        self.programs = folder / "environment" / "bin"
        self.work = folder / "work"
        self.work.mkdir()
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("BECKON_", "OPENAI_", "PYTHON"))
        }
        self.uv_settings = {
            "UV_INDEX": index,
            "UV_CONSTRAINT": str(ROOT / "requirements-run.lock"),
            "UV_PYTHON": sys.executable,
            "UV_TOOL_DIR": str(folder / "tools"),
        }
        self.environment |= self.uv_settings
        self.run(UV, "venv", "--quiet", str(self.programs.parent))
        self.uv_pip("install", f"beckon-cli=={VERSION}")

    def uv_pip(self, command: str, *words: str) -> str:
        python = self.programs / "python"
        return self.run(UV, "pip", command, "--quiet", "--no-config", "--python", str(python), *words)

    def beckon(self, *words: str, folder: Path | None = None) -> str:
        return self.run(self.programs / "beckon", *words, folder=folder)

    def run(self, *command: str | Path, folder: Path | None = None) -> str:
        ran = subprocess.run(
            command,
            cwd=folder or self.work,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout


@pytest.fixture(scope="module")
def installed(index: str, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("installed"), index)


def test_every_room_has_a_wheel_and_the_same_sources_give_the_same_bytes(
    wheels: list[Path], unreleased: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    again = build_wheels(tmp_path)

    names = [f"{distribution_of(room).replace('-', '_')}-{VERSION}-py3-none-any.whl" for room in ROOMS]
    assert [wheel.name for wheel in wheels] == sorted(names)
    assert [wheel.name for wheel in unreleased] == [wheel.name for wheel in again]
    for first, second in zip(unreleased, again, strict=True):
        assert first.read_bytes() == second.read_bytes(), first.name


def test_other_sources_without_a_release_have_another_version(tmp_path: Path, unreleased: list[Path]) -> None:
    (tmp_path / "room").mkdir()
    source = tmp_path / "room" / "module.py"
    digests = set()
    for text in ("one = 1\n", "one = 2\n", "one = 1\n"):
        source.write_text(text)
        digests.add(digest_of(tmp_path))
    source.rename(source.with_name("other.py"))
    digests.add(digest_of(tmp_path))

    assert len(digests) == 3
    (version,) = {wheel.name.split("-")[1] for wheel in unreleased}
    assert re.fullmatch(re.escape(current_version()) + r"\+b[0-9a-f]{12}", version)


@pytest.mark.parametrize("start", STARTS)
def test_the_readmes_commands_start_the_platform_without_a_checkout(
    start: str, installed: Installed, unreleased: list[Path], tmp_path: Path
) -> None:
    # An empty setting counts as unset, as for a user who has set nothing.
    settings = {"PYTHONPATH": "", "BECKON_MANIFESTS": "", **installed.uv_settings}
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "wheels").symlink_to(unreleased[0].parent)
    command = ("sh", "-c", f"exec {UV.parent}/{start}")
    platform = LocalPlatform(ROOT / "deploy" / "examples", tmp_path, settings, command=command)
    try:
        platform.wait_until_ready()
        (ask,) = re.findall(r"Next: +(.+)", platform.text())
        answer = installed.run("sh", "-c", ask)
        names = platform.tool_names()
    finally:
        platform.stop()
    assert "397.8" in answer
    assert {"calculator", "text_to_speech", "sql"} <= names


def test_the_readme_starts_the_wheels_of_a_clone_and_the_release() -> None:
    assert ["--find-links" in command for command in STARTS] == [True, False]


def test_a_user_without_a_checkout_installs_makes_a_tool_and_uninstalls(installed: Installed) -> None:
    assert installed.beckon("--version").strip() == VERSION
    installed.beckon("new", "tool", "order-status")
    project = installed.work / "order-status"
    assert "order_status" in installed.beckon("check", "manifests", folder=project)
    texts = [path.read_text(encoding="utf-8") for path in project.rglob("*") if path.is_file()]
    assert not [text for text in texts if str(ROOT) in text]

    names = {distribution_of(room) for room in ROOMS} - {"beckon-operator"}
    installed.uv_pip("uninstall", *sorted(names))
    assert not list(installed.programs.glob("beckon*"))
    assert not list(installed.programs.parent.glob("lib/*/site-packages/beckon*"))


def test_what_a_room_needs_of_another_has_the_same_version() -> None:
    pyproject = 'name = "beckon-x"\nversion = "0.1.0"\ndependencies = ["beckon-y[a,b]", "beckonry>=1"]\n'

    assert pin_version(pyproject, "1.2.3") == (
        'name = "beckon-x"\nversion = "1.2.3"\ndependencies = ["beckon-y[a,b]==1.2.3", "beckonry>=1"]\n'
    )


@pytest.mark.parametrize("version", ["", "v1.2.3", "1.2", "1.2.3; rm -rf /"])
def test_what_is_no_version_is_refused(version: str, tmp_path: Path) -> None:
    with pytest.raises(BadRelease, match="no version of a release"):
        build_wheels(tmp_path, version)
