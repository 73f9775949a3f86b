"""MCP's conformance suite for tasks, approvals and resources; `conformance.sh` brings and runs it."""

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from beckon_agent.auth.authentication import make_authenticator
from beckon_agent.auth.options import AccessOptions
from tests.agent.auth.closed_service import ClosedService, closed_service, terms
from tests.agent.event_platform import event_platform
from tests.agent.mcp.conformance_tools import TASK_TOOLS
from tests.agent.mcp.test_conformance import MODULES, node, read_checks

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(300),
    pytest.mark.skipif(not MODULES.is_dir(), reason="tests/agent/mcp/conformance.sh brings them from npm"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ClosedService]:
    """A whole service with a store, so with tasks, in front of the suite's tools."""
    folder = tmp_path_factory.mktemp("manifests-of-tasks")
    async with (
        event_platform(folder, TASK_TOOLS, {}, settings={}) as platform,
        aiohttp.ClientSession() as session,
    ):
        checks = make_authenticator(AccessOptions(host="127.0.0.1"), session)
        async with closed_service(platform, {"beckon": terms()}, checks) as running:
            yield running


SCENARIOS = (
    "tasks-capability-negotiation",
    "tasks-dispatch-and-envelope",
    "tasks-lifecycle",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-request-state-removal",
    "tasks-wire-fields",
    "tools-call-elicitation",
    "tools-call-sampling",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "sep-2164-resource-not-found",
    "caching",
    "input-required-result-basic-elicitation",
    "input-required-result-basic-list-roots",
    "input-required-result-basic-sampling",
    "input-required-result-capability-check",
    "input-required-result-ignore-extra-params",
    "input-required-result-missing-input-response",
    "input-required-result-multi-round",
    "input-required-result-multiple-input-requests",
    "input-required-result-request-state",
    "input-required-result-result-type",
    "input-required-result-tampered-state",
    "input-required-result-unsupported-methods",
    "input-required-result-validate-input",
)
"""All but those of a tool that must be a task, and those that decision 0070 lists."""

UNMET = {
    # A tool that crashes is a failure of the tool; no tool can end a task by an error of the protocol.
    "sep-2663-tasks-get-status-failed",
}


async def test_the_scenarios_of_tasks_and_approvals_pass(service: ClosedService, tmp_path: Path) -> None:
    for scenario in SCENARIOS:
        await node(
            "conformance/dist/index.js",
            "server",
            f"--url={service.http.base_url.join('mcp')}",
            f"--scenario={scenario}",
            f"--output-dir={tmp_path}",
        )
    checks = list(read_checks(tmp_path))
    passed = [check["id"] for check in checks if check["status"] == "SUCCESS"]
    print(f"tasks and approvals: {len(passed)} checks passed")  # noqa: T201  # the result
    assert {check["id"] for check in checks if check["status"] in ("FAILURE", "WARNING")} == UNMET
    assert len(passed) >= 98
