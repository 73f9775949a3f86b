"""The tool of docs/long-tools.md on a real platform: it takes a call, and answers after a restart of all."""

import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.docs.blocks import ROOT, blocks
from tests.e2e.local_platform import LocalPlatform, clean_environment
from tests.patience import PATIENCE, wait_until

PAGE = ROOT / "docs" / "long-tools.md"


@contextmanager
def running(work: Path, settings: dict[str, str]) -> Iterator[LocalPlatform]:
    platform = LocalPlatform(work / "manifests", work, settings)
    try:
        platform.wait_until_ready()
        wait_until(lambda: "report_yearly" in str(platform.tools()))
        yield platform
    finally:
        platform.stop()


def response(platform: LocalPlatform, response_id: str) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{platform.url}/v1/responses/{response_id}", timeout=PATIENCE).json()
    return found


def python(work: Path, *arguments: str, **environment: str) -> None:
    subprocess.run(
        [sys.executable, *arguments], cwd=work, env=clean_environment(environment), check=True, timeout=50
    )


def test_the_answer_comes_after_everything_was_started_anew(tmp_path: Path) -> None:
    for block in blocks(PAGE):
        if block.file:
            (tmp_path / block.file).write_text(block.text, encoding="utf-8")
    python(tmp_path, "-m", "beckon_tools", "manifest", "reports:yearly_report", "--output", "manifests")
    settings = {
        "BECKON_STORE": f"sqlite:///{tmp_path / 'runs.db'}",
        "BECKON_SHIM_KEYS": secrets.token_hex(32),
    }
    with running(tmp_path, settings) as platform:
        request = {"input": "Write the report of year 2026", "background": True, "include": ["mcp_call"]}
        begun = httpx.post(f"{platform.url}/v1/responses", json=request, timeout=PATIENCE).json()
        wait_until(lambda: list((tmp_path / "queue").glob("*.json")))
        inherited = Path(f"/proc/{platform.tool_pid('reports:yearly_report')}/environ").read_bytes()
        assert settings["BECKON_SHIM_KEYS"].encode() not in inherited
        wait_until(lambda: "in_progress" in response(platform, begun["id"])["status"])

    with running(tmp_path, settings) as platform:
        assert response(platform, begun["id"])["status"] == "in_progress"
        broker = re.search(r"broker\s+(http://\S+)", platform.text())
        assert broker is not None
        python(tmp_path, "worker.py", K_SINK=f"{broker[1]}/default/default")

        wait_until(lambda: response(platform, begun["id"])["status"] == "completed")
        ended = response(platform, begun["id"])

    assert ended["output"][0]["output"] == '{"year":2026,"pages":42}'
    assert not list((tmp_path / "queue").glob("*.json"))
