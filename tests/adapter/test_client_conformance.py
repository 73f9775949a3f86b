"""MCP's own conformance suite for clients, with `beckon import mcp --login` as the client.

`tests/agent/mcp/conformance.sh` brings and runs it.
"""

import json
import re
import sys
from pathlib import Path

import pytest

from tests.adapter.test_oauth import BROWSER
from tests.agent.mcp.test_conformance import MODULES, node

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(not MODULES.is_dir(), reason="tests/agent/mcp/conformance.sh brings it from npm"),
]

EXPECTED = {
    # Its client has a secret, and an import takes the id of a public one.
    "pre-registration",
    # An import calls no tool, so it needs no wider scope.
    "scope-step-up",
    # The import registers itself: no project page on the web describes it as a client.
    "basic-cimd",
}
"""Scenarios of what an import does not do."""


async def test_the_sign_in_passes_every_scenario_of_a_browsers_sign_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "client"
    program.write_text(
        "#!/bin/sh\nfor url; do :; done\n"
        f'exec {sys.executable} -m beckon_cli import mcp "$url" --name t --list --login\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("BROWSER", BROWSER["BROWSER"])

    await node(
        "conformance/dist/index.js",
        "client",
        f"--command={program}",
        "--suite=auth",
        "--spec-version=2026-07-28",
        f"--output-dir={tmp_path / 'results'}",
    )

    results = {
        re.sub(r"-\d{4}-\d\d-\d\dT.*", "", path.parent.name): {
            check["status"] for check in json.loads(path.read_text())
        }
        for path in (tmp_path / "results").rglob("checks.json")
    }
    failed = {name for name, statuses in results.items() if statuses & {"FAILURE", "WARNING"}}
    assert failed == EXPECTED
    assert len(results) - len(failed) >= 11
