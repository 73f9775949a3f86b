"""Clients as they are published, each in an environment of its own; `clients.sh` brings and runs them."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.e2e.local_platform import ROOT, LocalPlatform, clean_environment

HERE = Path(__file__).parent
CLIENTS = Path(os.environ.get("BECKON_TEST_CLIENTS", "/nowhere"))
PYTHON = CLIENTS / "python" / "bin"

CAREFUL = """
apiVersion: beckon.dev/v1alpha1
kind: Agent
metadata:
  name: careful
spec:
  systemPrompt: You answer with your tools.
  toolPolicies:
    - approval: Always
"""

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(not CLIENTS.is_dir(), reason="tests/clients/clients.sh brings them"),
]


def run(platform: LocalPlatform, *command: str | Path, **settings: str) -> str:
    """Run a client, which must end well; return what it printed."""
    address: Mapping[str, str] = {"BASE_URL": f"{platform.url}/v1", "OPENAI_API_KEY": "sk-any"}
    done = subprocess.run(
        command,
        env=clean_environment({**address, **settings}),
        cwd=CLIENTS / "node",
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("suite", ["openai.test.mjs", "a2a.test.mjs"])
def test_a_package_of_node_has_all_it_needs(platform: LocalPlatform, suite: str) -> None:
    node = CLIENTS / "node" / "node_modules" / ".bin" / "node"

    said = run(platform, node, "--test", "--test-reporter=tap", suite)

    print("\n".join(line for line in said.splitlines() if line.startswith("ok ")))  # noqa: T201  # the result
    assert "# fail 0" in said
    assert "# pass 0" not in said


@pytest.fixture(scope="module")
def careful_platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPlatform]:
    """The platform with one more agent, whose calls need an approval."""
    folder = tmp_path_factory.mktemp("careful")
    shutil.copytree(ROOT / "deploy" / "examples", folder / "manifests")
    (folder / "manifests" / "careful.yaml").write_text(CAREFUL, encoding="utf-8")
    running = LocalPlatform(folder / "manifests", folder, {})
    try:
        running.wait_until_ready()
        yield running
    finally:
        running.stop()


def test_the_client_of_ag_ui_runs_agents_and_decides_calls(careful_platform: LocalPlatform) -> None:
    node = CLIENTS / "node" / "node_modules" / ".bin" / "node"

    said = run(
        careful_platform,
        *(node, "--test", "--test-reporter=tap", "ag-ui.test.mjs"),
        AGENT_URL=careful_platform.url,
    )

    print("\n".join(line for line in said.splitlines() if line.startswith("ok ")))  # noqa: T201  # the result
    assert "# fail 0" in said
    assert "# pass 0" not in said


def test_langchain_and_its_agent_use_the_clusters_tools_beside_their_own(platform: LocalPlatform) -> None:
    said = run(platform, PYTHON / "python", HERE / "python" / "langchain_agent.py")

    assert said.splitlines() == ["ok chat completions", "ok responses"]


@pytest.fixture
def llm(tmp_path: Path, platform: LocalPlatform) -> dict[str, str]:
    """The settings of `llm`, as docs/clients.md says to make them."""
    (tmp_path / "extra-openai-models.yaml").write_text(
        f"- model_id: beckon\n  model_name: beckon\n  api_base: {platform.url}/v1\n  supports_tools: true\n",
        encoding="utf-8",
    )
    return {"LLM_USER_PATH": str(tmp_path)}


def test_llm_answers_the_same_streaming_and_not_and_goes_on(
    platform: LocalPlatform, llm: dict[str, str]
) -> None:
    question = "What is 17% of 2340?"
    streamed = run(platform, PYTHON / "llm", "-m", "beckon", question, **llm)
    whole = run(platform, PYTHON / "llm", "-m", "beckon", "--no-stream", question, **llm)
    further = run(platform, PYTHON / "llm", "-c", "What is 2 + 3?", **llm)

    assert "397.8" in streamed
    assert streamed == whole
    assert "result 5" in further


@pytest.mark.parametrize("how", [[], ["--no-stream"]])
def test_llm_runs_its_own_functions(platform: LocalPlatform, llm: dict[str, str], how: list[str]) -> None:
    function = (
        'def locate_user() -> str:\n    "Locate the user: the city where the user is."\n    return "Bonn"'
    )
    question = "Locate the user: in which city?"

    said = run(platform, PYTHON / "llm", "-m", "beckon", *how, "--functions", function, question, **llm)

    assert "Bonn" in said
