"""`beckon import mcp --into`: a command becomes a project with an image and a Service, and runs here, too."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from beckon_cli.errors import CommandError
from beckon_cli.importing.mcp.packages import declared_packages, find_distributions, find_imports
from beckon_cli.importing.mcp.project import Runtime, recipe_of
from tests.cli.run_beckon import beckon
from tests.e2e.local_platform import ROOT, LocalPlatform, is_running
from tests.patience import PATIENCE, wait_until

SERVER = ROOT / "tests" / "adapter" / "wild_mcp_tools.py"
SECRET = "s3cr3t-of-a-test"
OUTPUT = "output.txt"  # that of the platform, which runs in the project's folder


def imported(folder: Path, *words: str, **environment: str) -> Any:
    return beckon(
        *("import", "mcp", "--name", "wild", *words, "--", sys.executable, str(SERVER)),
        cwd=folder,
        settings={"SECRET": SECRET, **environment},
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of a server that is a script."""
    folder = tmp_path_factory.mktemp("mcp")
    done = imported(folder, "--into", "wild", "--env", "SECRET")
    assert done.returncode == 0, done.stderr
    assert [line.removeprefix("Next:").strip() for line in done.stdout.splitlines()[-4:]] == [
        "cd wild && beckon up --manifests manifests",
        "docker build --tag dev.local/mcp-wild:0.1.0 wild",
        'kubectl create secret generic mcp-wild --from-literal=SECRET="$SECRET"',
        "kubectl apply -f wild/manifests",
    ]
    return folder / "wild"


def container_of(project: Path) -> dict[str, Any]:
    service = yaml.safe_load((project / "manifests" / "service.yaml").read_text(encoding="utf-8"))
    (container,) = service["spec"]["template"]["spec"]["containers"]
    return dict(container)


def test_a_project_has_manifests_an_image_and_the_server(project: Path) -> None:
    files = {str(path.relative_to(project)) for path in project.rglob("*") if path.is_file()} - {OUTPUT}
    checked = beckon("check", "manifests", cwd=project)

    assert files == {
        ".dockerignore",
        "Dockerfile",
        "README.md",
        "manifests/mcp-wild.yaml",
        "manifests/service.yaml",
        "manifests/sinkbinding.yaml",
        "server/requirements.txt",
        "server/wild_mcp_tools.py",
    }
    assert (project / "server" / "requirements.txt").read_text() == "mcp==2.3.0\n"
    assert "0 errors, 0 warnings" in checked.stdout


def test_the_image_starts_what_the_service_starts(project: Path) -> None:
    text = (project / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    steps = [line.split(" ", 1) for line in text.splitlines() if line and not line.startswith("#")]
    container = container_of(project)
    copied = [words.split()[-2] for verb, words in steps if verb == "COPY" and "--from" not in words]

    assert [yaml.safe_load(words) for verb, words in steps if verb in ("ENTRYPOINT", "CMD")] == [
        container["command"],
        container["args"],
    ]
    assert all((project / name).exists() for name in copied)
    assert container["args"][-2:] == ["/srv/server/env/bin/python", "/srv/server/wild_mcp_tools.py"]


def test_no_secret_and_no_command_is_where_it_should_not(project: Path) -> None:
    texts = {path.name: path.read_text() for path in project.rglob("*") if path.is_file()}
    environment = {each["name"]: each for each in container_of(project)["env"]}

    assert not [name for name, text in texts.items() if SECRET in text]
    assert environment["SECRET"]["valueFrom"] == {"secretKeyRef": {"name": "mcp-wild", "key": "SECRET"}}
    assert SERVER.name not in texts["mcp-wild.yaml"]


def test_reports_of_progress_go_to_the_broker_of_the_calls(project: Path) -> None:
    tools = list(yaml.safe_load_all((project / "manifests" / "mcp-wild.yaml").read_text(encoding="utf-8")))
    binding = yaml.safe_load((project / "manifests" / "sinkbinding.yaml").read_text(encoding="utf-8"))
    (trigger, *_) = [each for each in tools if each["kind"] == "Trigger"]

    assert binding["spec"]["sink"]["ref"]["name"] == trigger["spec"]["broker"]
    assert binding["spec"]["subject"] == trigger["spec"]["subscriber"]["ref"]


def test_the_pod_has_the_least_rights_that_do(project: Path) -> None:
    service = yaml.safe_load((project / "manifests" / "service.yaml").read_text(encoding="utf-8"))
    pod = service["spec"]["template"]["spec"]
    container = container_of(project)

    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["securityContext"]["runAsNonRoot"]
    assert container["resources"]["limits"]
    assert [each["mountPath"] for each in container["volumeMounts"]] == ["/tmp"]


@pytest.fixture(scope="module")
def platform(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPlatform]:
    running = LocalPlatform(project / "manifests", project, {"SECRET": SECRET})
    try:
        running.wait_until_ready()
        yield running
    finally:
        running.stop()


def called(platform: LocalPlatform, tool: str) -> Any:
    answer = httpx.post(f"{platform.url}/tools/wild_{tool}", json={}, timeout=PATIENCE)
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


def test_its_tools_are_called_through_the_broker_here(platform: LocalPlatform) -> None:
    first, second = called(platform, "process"), called(platform, "process")

    assert first == second
    assert called(platform, "secret") == "it is [hidden]"


def test_a_server_that_was_killed_is_back_at_the_next_call(platform: LocalPlatform) -> None:
    before = int(called(platform, "process"))
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: not is_running(before))
    wait_until(lambda: "has ended" in platform.text())

    assert int(called(platform, "process")) != before


def test_importing_again_keeps_what_its_owner_has_changed(tmp_path: Path) -> None:
    imported(tmp_path, "--into", "wild")
    service = tmp_path / "wild" / "manifests" / "service.yaml"
    mine = service.read_text().replace("'10'", "'3'")
    service.write_text(mine)
    (tmp_path / "wild" / "manifests" / "mcp-wild.yaml").unlink()
    again = imported(tmp_path, "--into", "wild")

    assert again.returncode == 0, again.stderr
    assert "kept     manifests/service.yaml" in again.stdout
    assert "added    mcp-wild.yaml" in again.stdout
    assert service.read_text() == mine
    renewed = imported(tmp_path, "--into", "wild", "--renew")
    assert "added    manifests/service.yaml" in renewed.stdout
    assert service.read_text() != mine


def test_what_a_server_has_changed_is_shown_and_nothing_written(tmp_path: Path) -> None:
    imported(tmp_path, "--into", "wild")
    file = tmp_path / "wild" / "manifests" / "mcp-wild.yaml"
    same = imported(tmp_path, "--into", "wild", "--diff")
    text = (
        file.read_text().replace("Tell the secret.", "Tell it.").replace("complain of the", "praise of the")
    )
    file.write_text(text)
    (tmp_path / "changed").touch()
    other = imported(tmp_path, "--into", "wild", "--diff", TOOLS=str(tmp_path / "changed"))

    assert (same.returncode, same.stdout) == (0, "wild: 9 tools, 0 differ\n")
    assert other.returncode == 1
    assert other.stdout.splitlines() == [
        "new      complain: Write on the standard error.",
        "changed  secret: another description",
        "changed  second: another description, no parameter number and a new parameter count",
        "gone     praise",
        "wild: 9 tools, 4 differ",
    ]
    assert file.read_text() == text


def test_a_deployment_and_a_service_stand_in_for_a_knative_service(tmp_path: Path) -> None:
    imported(tmp_path, "--into", "wild", "--deployment", "--namespace", "shop")
    made = list(yaml.safe_load_all((tmp_path / "wild" / "manifests" / "service.yaml").read_text()))
    tools = list(yaml.safe_load_all((tmp_path / "wild" / "manifests" / "mcp-wild.yaml").read_text()))
    triggers = [each for each in tools if each["kind"] == "Trigger"]

    binding = yaml.safe_load((tmp_path / "wild" / "manifests" / "sinkbinding.yaml").read_text())

    assert [each["kind"] for each in made] == ["Deployment", "Service"]
    assert made[0]["spec"]["template"]["spec"]["containers"][0]["name"] == "bridge"  # Kubernetes wants one
    assert {each["metadata"]["namespace"] for each in (*made, *tools, binding)} == {"shop"}
    assert binding["spec"]["subject"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "mcp-wild"}
    assert {each["spec"]["subscriber"]["ref"]["apiVersion"] for each in triggers} == {"v1"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--into", "x", "--output", "y", "--", "true"), "choose one"),
        (("--env", "HOME", "--", "true"), "need --into"),
        (("--into", "x", "https://mcp.example.com/mcp"), "are for a command"),
        (("--into", "x", "--env", "NO_SUCH_VARIABLE", "--", "true"), "the environment here has none"),
        (("--into", "x", "--env", "A=secret", "--", "true"), "--env A: write the name of a variable alone"),
        (("--into", "x", "--", "docker", "run", "-i", "mcp/time"), "--base-image"),
        (("--into", "x", "--", "npx", "x", "--api-key", "hush"), "--api-key holds a secret"),
        (("--into", "x", "--", "npx", "x", "--token=hush"), "--token holds a secret"),
        (("--output", "x", "--", "npx", "x", "postgresql://me:hush@db/x"), "postgresql://… holds a secret"),
        (("--diff", "--", "true"), "--diff needs the folder"),
    ],
)
def test_words_that_make_no_sense_are_one_line_and_make_nothing(
    words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    refused = beckon("import", "mcp", *words, cwd=tmp_path)

    assert refused.returncode == 2
    assert said in refused.stderr
    assert "hush" not in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "runtime", "command"),
    [
        (
            ("python3", "-m", "json.tool", "x"),
            Runtime.PYTHON,
            ("/srv/server/env/bin/python", "-m", "json.tool", "x"),
        ),
        (("/opt/x/server", "--stdio"), Runtime.GIVEN, ("server", "--stdio")),
        (("uv", "run", "server.py"), Runtime.GIVEN, ("uv", "run", "server.py")),
    ],
)
def test_a_command_becomes_one_of_the_image(
    words: tuple[str, ...], runtime: Runtime, command: tuple[str, ...]
) -> None:
    made = recipe_of(words)

    assert (made.runtime, made.command) == (runtime, command)


def test_with_a_base_that_has_the_command_nothing_is_installed() -> None:
    made = recipe_of(["npx", "-y", "whatever"], "registry.example/base:1")

    assert (made.runtime, made.files) == (Runtime.GIVEN, {})


def test_a_file_of_this_machine_is_reported() -> None:
    assert recipe_of(["server", "/etc"], "x").unknown == (
        "/etc is of this machine: mount it in the Service, or write another",
    )


def test_a_secret_is_reported_before_anything_else() -> None:
    with pytest.raises(CommandError):
        recipe_of(["docker", "run", "--password", "hush"])


def test_what_a_script_needs_is_read_from_it() -> None:
    script = (
        "# /// script\n# dependencies = ['mcp>=2', 'x']\n# ///\nimport os, mcp.server\nfrom yaml import x\n"
    )

    assert declared_packages(script) == {"mcp>=2", "x"}
    assert find_imports(script) == ["mcp", "yaml"]
    assert declared_packages("import os") == set()
    found = find_distributions(sys.executable, ["mcp", "no_such_module"])
    assert list(found) == ["mcp"]
    assert json.dumps(found).startswith('{"mcp": "mcp==')
