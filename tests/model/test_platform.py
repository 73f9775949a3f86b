"""The examples with a real language model, streamed and not: every call is valid, and every run ends."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import jsonschema
import pytest

from beckon_agent.tools.query import FIND_TOOLS
from bench.model.questions import QUESTIONS
from tests.e2e.conftest import EXAMPLES
from tests.e2e.local_platform import LocalPlatform
from tests.patience import PATIENCE

SECONDS = 300.0
QUESTIONS_HERE = [question.text for question in QUESTIONS[17:40:20]] + ["Hello, who are you?"]
pytestmark = pytest.mark.timeout(SECONDS + 60)
LIMITS = {"BECKON_MAX_STEPS": "2", "BECKON_MAX_TOOLS": "4", "BECKON_MAX_SECONDS": "240"}


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPlatform]:
    """The platform as `beckon up --model local` starts it."""
    folder = tmp_path_factory.mktemp("platform")
    platform = LocalPlatform(EXAMPLES, folder, LIMITS, flags=["--model", "local", "--no-watch"])
    try:
        platform.wait_until_ready()
        yield platform
    finally:
        platform.stop()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("question", QUESTIONS_HERE)
def test_every_call_is_valid_and_every_run_ends(platform: LocalPlatform, question: str, stream: bool) -> None:
    schemas = {FIND_TOOLS.name: FIND_TOOLS.parameters}
    schemas |= {tool["name"]: tool["parameters"] for tool in platform.tools()}

    response = _ask(platform, question, stream=stream)

    run = httpx.get(f"{platform.url}/runs/{response['id']}", timeout=PATIENCE).json()
    calls = [call for step in run["steps"] for call in step["calls"]]
    assert run["status"] == response["status"]
    assert run["status"] in ("completed", "incomplete")
    assert all("prompted" in step["model"] for step in run["steps"][1:])
    for call in calls:
        jsonschema.validate(call["arguments"], schemas[call["name"]])
    assert [call for call in calls if call["reason"] in ("bad_arguments", "unknown_tool")] == []


def test_a_question_leads_to_a_call_of_the_right_tool_and_its_result(platform: LocalPlatform) -> None:
    response = _ask(platform, "Query the database: SELECT symbol FROM elements", stream=True)

    run = httpx.get(f"{platform.url}/runs/{response['id']}", timeout=PATIENCE).json()
    call = run["steps"][0]["calls"][0]
    assert (call["name"], call["failed"]) == ("sql", False)
    assert call["arguments"] == {"query": "SELECT symbol FROM elements"}


def _ask(platform: LocalPlatform, question: str, *, stream: bool) -> Mapping[str, Any]:
    """Ask by the Responses API; return the last response document."""
    body = {
        "model": "beckon",
        "input": question,
        "stream": stream,
        "temperature": 0,
        "max_output_tokens": 64,
    }
    answer = httpx.post(f"{platform.url}/v1/responses", json=body, timeout=SECONDS)
    assert answer.status_code == 200, answer.text
    if not stream:
        whole: Mapping[str, Any] = answer.json()
        return whole
    events = [
        json.loads(line.removeprefix("data: "))
        for line in answer.text.splitlines()
        if line.startswith("data: {")
    ]
    last: Mapping[str, Any] = events[-1]["response"]
    return last
