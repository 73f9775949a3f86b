"""`beckon new tool` and `beckon manifest`: a project that works as it is, and manifests of any tool."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import yaml

from beckon_cli.commands.new import manifest
from beckon_tools.shipped import DEFAULT_IMAGE
from tests.cli.run_beckon import beckon
from tests.e2e.local_platform import clean_environment, port_range
from tests.patience import PATIENCE, wait_until

FILES = {
    ".gitignore",
    "Dockerfile",
    "README.md",
    "manifests",
    "order_status.py",
    "pyproject.toml",
    "test_order_status.py",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a new tool."""
    return new_project(tmp_path_factory.mktemp("new"))


def new_project(folder: Path) -> Path:
    """Make a tool below a folder; return its own folder."""
    made = beckon("new", "tool", "order-status", cwd=folder)
    assert made.returncode == 0, made.stderr
    beckon_here = "beckon" if shutil.which("beckon") else f"{sys.executable} -m beckon_cli"
    assert re.findall(r"^(?:Next:)? +(\S.*?)(?:  .*)?$", made.stdout, re.MULTILINE) == [
        f"cd order-status && {beckon_here} up --manifests manifests",
        f'{beckon_here} ask "What is the order status of 1001?"',
    ]
    return folder / "order-status"


def test_a_new_tool_has_all_that_a_project_needs(tmp_path: Path) -> None:
    project = new_project(tmp_path)  # of its own: other tests leave bytecode in the shared one

    assert {path.name for path in project.iterdir()} == FILES
    assert {path.name for path in (project / "manifests").iterdir()} == {
        "eventtype.yaml",
        "service.yaml",
        "trigger.yaml",
    }
    texts = [path.read_text(encoding="utf-8") for path in project.rglob("*") if path.is_file()]
    assert not [text for text in texts if "$module" in text or "$name" in text]


def test_its_own_tests_pass(project: Path) -> None:
    tested = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:asyncio",
            "-p",
            "no:xdist",
        ],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert "3 passed" in tested.stdout, tested.stdout


def test_its_manifests_have_no_mistakes_and_name_its_image(project: Path) -> None:
    checked = beckon("check", "manifests", cwd=project)
    service = yaml.safe_load((project / "manifests" / "service.yaml").read_text(encoding="utf-8"))
    (container,) = service["spec"]["template"]["spec"]["containers"]

    assert checked.returncode == 0, checked.stdout
    assert "1 tool, 0 errors, 0 warnings" in checked.stdout
    assert container["image"] == "dev.local/order-status:0.1.0"


def test_its_image_starts_what_its_service_starts(project: Path) -> None:
    lines = (project / "Dockerfile").read_text(encoding="utf-8").splitlines()
    steps = dict(line.split(" ", 1) for line in lines if line and not line.startswith("#"))
    service = yaml.safe_load((project / "manifests" / "service.yaml").read_text(encoding="utf-8"))
    (container,) = service["spec"]["template"]["spec"]["containers"]

    assert steps["ARG"] == f"BASE={DEFAULT_IMAGE}"
    assert steps["FROM"] == "${BASE}"
    assert yaml.safe_load(steps["CMD"]) == container["args"]
    assert (project / steps["COPY"].split()[-2]).is_file()
    assert steps["COPY"].split()[-1] == f"{steps['WORKDIR']}/"


def test_its_service_starts_where_the_image_has_nothing_but_its_module(project: Path, tmp_path: Path) -> None:
    shutil.copy(project / "order_status.py", tmp_path)
    service = yaml.safe_load((project / "manifests" / "service.yaml").read_text(encoding="utf-8"))
    (container,) = service["spec"]["template"]["spec"]["containers"]
    port = port_range()
    started = subprocess.Popen(
        [sys.executable, *container["command"][1:], *container["args"]],
        cwd=tmp_path,
        env=clean_environment({"PORT": str(port), "PYTHONSAFEPATH": "1", "PYTHONDONTWRITEBYTECODE": "1"}),
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: answers(f"http://127.0.0.1:{port}/readyz"))
    finally:
        started.terminate()
    assert started.wait(20) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"order_status.py"}


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=PATIENCE).status_code == 200
    except httpx.ConnectError:
        return False


def test_beckon_manifest_prints_what_the_sdks_own_command_prints(project: Path) -> None:
    words = ("manifest", "order_status:order_status", "--namespace", "shop", "--broker", "orders")
    ours = beckon(*words, cwd=project)
    sdks = subprocess.run(
        [sys.executable, "-m", "beckon_tools", *words],
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
    )

    assert ours.returncode == 0, ours.stderr
    assert ours.stdout == sdks.stdout
    assert {document["kind"] for document in yaml.safe_load_all(ours.stdout)} == {
        "EventType",
        "Trigger",
        "Service",
    }


def test_beckon_manifest_writes_a_file_each(tmp_path: Path) -> None:
    manifest("calculator", output=tmp_path / "made")

    assert len(list((tmp_path / "made").glob("*.yaml"))) == 3


@pytest.mark.parametrize(
    ("reference", "said"),
    [("calculater", "did you mean 'calculator'"), ("nowhere:at_all", "nowhere"), ("json:dumps", "no tool")],
)
def test_what_is_no_tool_has_no_manifests(reference: str, said: str, tmp_path: Path) -> None:
    refused = beckon("manifest", reference, cwd=tmp_path)

    assert refused.returncode == 2
    assert said in refused.stderr
    assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "name",
    ["", "Order", "order_status", "a b", "../order", "1st", "a--b", "-a", "ü", "a" * 51, "json", "class"],
)
def test_a_name_that_cannot_be_a_tools_is_refused_and_nothing_made(name: str, tmp_path: Path) -> None:
    refused = beckon("new", "tool", "--", name, cwd=tmp_path)

    assert refused.returncode == 2
    assert refused.stderr.startswith("beckon: ")
    assert refused.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "order-status").mkdir()
    (tmp_path / "order-status" / "mine.txt").write_text("mine")

    refused = beckon("new", "tool", "order-status", cwd=tmp_path)

    assert refused.returncode == 2
    assert "is there already" in refused.stderr
    assert [path.name for path in (tmp_path / "order-status").iterdir()] == ["mine.txt"]
