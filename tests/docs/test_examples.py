"""The commands of the docs, run beside a platform that runs the tutorial's tool and the shipped ones."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from tests.docs.blocks import PAGES, ROOT, Block, blocks, every_block, table
from tests.e2e.local_platform import LocalPlatform, clean_environment
from tests.patience import PATIENCE

TUTORIAL = ROOT / "docs" / "write-a-tool.md"
PROJECT = "order-status"
PORTS = (8080, 8081, 8082, 8083, 8084)  # agent, broker, shim, its replies, demo model
SHOWING = [page for page in PAGES if any(page == block.page for block in every_block("console", ""))]
VARYING = (
    (re.compile(r"BECKON_PORT=\d+ "), ""),
    (re.compile(r":\d{4,5}\b"), ":PORT"),
    (re.compile(r"\(\d+\.\d+ s\)"), "(S s)"),
    (re.compile(r'"seconds": [\d.e-]+'), '"seconds": S'),
    (re.compile(r"\s+"), " "),
)


class Documented:
    """A platform as the docs describe it, and a folder for the commands of each page."""

    def __init__(self, work: Path) -> None:
        self._work = work
        tutorial = follow(work)
        manifests = work / "manifests"
        shutil.copytree(ROOT / "deploy" / "examples", manifests)
        shutil.copytree(tutorial / "manifests", manifests / "orders")
        up = (Path(sys.executable).parent / "beckon", "up")  # as a user starts it
        self.platform = LocalPlatform(manifests, tutorial, {"MAKELEVEL": "1"}, command=up)
        self.environment = environment({"BECKON_PORT": str(self.platform.port)})
        self._addresses: dict[str, str] = {}

    def wait_until_ready(self) -> None:
        """Wait until the platform has said where it answers."""
        self.platform.wait_until_ready()
        self._addresses = addresses(self.platform)

    def folder(self, page: Path) -> Path:
        """Return where the commands of a page are run, with the files that the page shows."""
        folder = self._work / (PROJECT if page == TUTORIAL else page.stem)
        if not folder.exists():
            folder.mkdir()
            (folder / "deploy").symlink_to(ROOT / "deploy")
            for block in blocks(page):
                if block.file:
                    (folder / block.file).parent.mkdir(exist_ok=True)
                    (folder / block.file).write_text(block.text, encoding="utf-8")
        return folder

    def run(self, command: str, page: Path) -> str:
        """Run a command of a page, and return what it prints."""
        return run(self.here(command), self.folder(page), self.environment)

    def here(self, text: str) -> str:
        """Return a text with the addresses of this platform in place of those in the docs."""
        for documented, address in self._addresses.items():
            text = text.replace(documented, address)
        return text


def follow(work: Path) -> Path:
    """Do what the tutorial says before the platform is started; return the folder of its project."""
    shell = environment({})
    run(f"beckon new tool {PROJECT}", work, shell)
    folder = work / PROJECT
    for block in blocks(TUTORIAL):
        if block.file:
            (folder / block.file).write_text(block.text, encoding="utf-8")
    for block in every_block("console", "setup"):
        for command, lines in block.commands:
            assert_shows(run(command, folder, shell), lines, f"{block}: {command}")
    shown, *_ = [block.text for block in every_block("yaml", "fragment") if block.page == TUTORIAL]
    service = yaml.safe_load((folder / "manifests" / "service.yaml").read_text(encoding="utf-8"))
    for field, value in yaml.safe_load(shown)["metadata"].items():
        assert service["metadata"][field] == value
    return folder


def environment(settings: dict[str, str]) -> dict[str, str]:
    """Return the environment of a shell in which Beckon's commands are on the path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**clean_environment(settings), "PATH": path}


def addresses(platform: LocalPlatform) -> dict[str, str]:
    """Return the addresses in the docs with those that this platform has printed."""
    printed = re.findall(r"http://(127\.0\.0\.1:\d+)", platform.text().partition("\ntools")[0])
    agent = printed.index(f"127.0.0.1:{platform.port}")
    found = dict.fromkeys(printed[agent:])
    return dict(zip((f"127.0.0.1:{port}" for port in PORTS), found, strict=True))


def run(command: str, folder: Path, environment: dict[str, str]) -> str:
    """Run a command as a shell does, and return all that it prints."""
    if command.startswith("make "):  # in the clone, whose set-up is no concern of a test
        command = f"make -C {ROOT} -s -o .venv/run BIN={Path(sys.executable).parent} {command[5:]}"
    ended = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=50,
        check=False,
    )
    return ended.stdout


def assert_shows(output: str, lines: list[str], what: str) -> None:
    """Assert that an output has these lines in their order, `…` standing for anything."""
    rest = [same(line) for line in output.splitlines()]
    for line in lines:
        parts = [same(part) for part in line.split("…") if part.strip()]
        while rest and not has(rest[0], parts):
            rest.pop(0)
        assert rest, f"{what}\nnot shown: {line}\noutput:\n{output}"
        rest.pop(0)


def has(line: str, parts: list[str]) -> bool:
    """Whether a line holds these parts in their order."""
    for part in parts:
        _, found, line = line.partition(part)
        if not found:
            return False
    return True


def same(text: str) -> str:
    """Return a text without what differs from run to run."""
    for varying, fixed in VARYING:
        text = varying.sub(fixed, text)
    return text.strip()


@pytest.fixture(scope="module")
def documented(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Documented]:
    """The platform that all tests of this module share."""
    found = Documented(tmp_path_factory.mktemp("docs"))
    try:
        found.wait_until_ready()
        yield found
    finally:
        status = found.platform.stop()
    assert status == 0


@pytest.mark.timeout(600)  # a page has dozens of commands, each with a limit of its own
@pytest.mark.parametrize("page", SHOWING, ids=lambda page: page.name)
def test_commands_print_what_the_page_shows(documented: Documented, page: Path) -> None:
    for block in blocks(page):
        for command, lines in block.commands if (block.language, block.mark) == ("console", "") else ():
            assert_shows(documented.run(command, page), lines, f"{block}: {command}")


@pytest.mark.parametrize("block", every_block("console", "up"), ids=str)
def test_the_platform_says_what_the_page_shows(documented: Documented, block: Block) -> None:
    ((_, lines),) = block.commands

    assert_shows(documented.platform.text(), lines, str(block))


@pytest.mark.parametrize("block", every_block("python", "run"), ids=str)
def test_programs_print_what_the_page_shows(documented: Documented, block: Block) -> None:
    shown = next(
        other for other in blocks(block.page) if other.line > block.line and other.language == "text"
    )

    output = subprocess.run(
        [sys.executable, "-c", documented.here(block.text)],
        env=documented.environment,
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    ).stdout

    assert_shows(output, shown.text.splitlines(), str(block))


def test_the_metrics_are_those_of_the_table(documented: Documented) -> None:
    places = [documented.here(f"127.0.0.1:{port}") for port in PORTS[:3]]
    (tool,) = re.findall(r"calculator :(\d+)", documented.platform.text())
    pages = [
        httpx.get(f"http://{place}/metrics", timeout=PATIENCE).text
        for place in (*places, f"127.0.0.1:{tool}")
    ]
    served = {name for page in pages for name in re.findall(r"^# HELP (beckon_\w+)", page, re.MULTILINE)}

    listed = {row[0].strip("`") for row in table(ROOT / "docs" / "operate.md", "metric")}
    listed -= {
        "beckon_operator_tools",
        "beckon_operator_replies_arrive",
    }  # of a cluster: see the operator's tests

    assert listed == {name for name in served if not name.endswith("_created")}
