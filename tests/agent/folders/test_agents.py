"""Agents in the manifests of a laptop: hosted beside the service's own, followed as the files change."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import pytest

from beckon_agent.agents.configured import ConfiguredAgent
from beckon_agent.agents.folder import FolderAgents, FolderSource
from beckon_agent.agents.keys import SecretFiles
from beckon_agent.agents.model_pool import ModelSpec
from beckon_agent.app import build_app
from beckon_agent.auth.authorization import PermittedAgents
from beckon_agent.core.run_types import Agent, Limits
from beckon_agent.service import Service
from beckon_agent.telemetry.metrics import Metrics
from beckon_agent.tool_calls.caller import Dispatcher, ToolCaller
from tests.agent.cluster_objects import agent
from tests.agent.event_platform import described
from tests.agent.folders.test_catalogue import SERVICE, a_tool, write
from tests.agent.many_agents import ManyAgents
from tests.agent.model_server import ModelServer, model_server
from tests.agent.running_agent import open_door
from tests.agent.scripted_model import KEY, says
from tests.patience import PATIENCE, eventually
from tests.serving import served

OWN = "You are the service's own."


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    async with model_server() as running:
        yield running


@asynccontextmanager
async def serving(folder: Path, model: ModelServer, secrets: Path | None = None) -> AsyncIterator[ManyAgents]:
    own = ConfiguredAgent(
        Agent("beckon", "default", OWN, Limits(steps=3, seconds=20)), ModelSpec(model.url, "m", "native", KEY)
    )
    registry = FolderAgents(FolderSource([folder], own.agent.source), own, SecretFiles(secrets))
    async with aiohttp.ClientSession() as session:
        caller = ToolCaller(Dispatcher(session, "http://127.0.0.1:9"))
        service = Service(PermittedAgents(registry), caller, Metrics(), max_runs=16)
        try:
            async with (
                served(build_app(service, open_door, max_request_bytes=200_000)) as url,
                httpx.AsyncClient(base_url=url, timeout=PATIENCE) as http,
            ):
                yield ManyAgents(http)
        finally:
            await registry.close()


def of(namespace: str, objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return objects in another namespace."""
    return [{**one, "metadata": {**one["metadata"], "namespace": namespace}} for one in objects]


def labelled(name: str, **labels: str) -> list[dict[str, Any]]:
    """Return a tool whose EventType has labels."""
    event_type, *others = a_tool(name)
    return [{**event_type, "metadata": {**event_type["metadata"], "labels": labels}}, *others]


async def test_an_agent_has_its_own_prompt_model_and_choice_of_tools(
    tmp_path: Path, model: ModelServer
) -> None:
    write(tmp_path / "tools.yaml", *labelled("mine", team="x"), *described("theirs", "svc"))
    spec: dict[str, Any] = {
        "systemPrompt": "Be brief.",
        "model": {"name": "other"},
        "tools": {"selector": {"matchLabels": {"team": "x"}}},
    }
    write(tmp_path / "agent.yaml", agent("helper", **spec))
    async with serving(tmp_path, model) as agents:
        assert await agents.ask("helper") == {"system": "Be brief.", "model": "other", "tools": ["mine"]}
        assert await agents.ask() == {"system": OWN, "model": "m", "tools": ["mine", "theirs"]}
        listed = (await agents.http.get("/v1/models")).json()["data"]
        assert [one["id"] for one in listed] == ["beckon", "helper"]


async def test_an_agent_with_an_output_schema_gives_valid_json_unless_a_request_has_another_format(
    tmp_path: Path, model: ModelServer
) -> None:
    schema = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
    write(tmp_path / "agent.yaml", agent("helper", outputSchema=schema))
    async with serving(tmp_path, model) as agents:
        failed = await agents.post("helper")
        other = await agents.post("helper", response_format={"type": "json_object"})
        plain = await agents.post("helper", response_format={"type": "text"})
        model.script.append(says('{"colour": "red"}'))
        good = await agents.post("helper")

    formats = [request.body.get("response_format") for request in model.requests]
    wanted = {"type": "json_schema", "json_schema": {"name": "output", "schema": schema}}
    assert formats == [wanted, wanted, {"type": "json_object"}, None, wanted]
    assert [one.status_code for one in (failed, other, plain, good)] == [400, 200, 200, 200]
    assert "missing" in failed.json()["error"]["message"]
    assert good.json()["choices"][0]["message"]["content"] == '{"colour": "red"}'


async def test_an_agent_has_the_tools_of_its_namespace_and_the_services_own_has_all(
    tmp_path: Path, model: ModelServer
) -> None:
    write(tmp_path / "here.yaml", *a_tool("here"))
    write(tmp_path / "there.yaml", *of("team-a", a_tool("there")), agent("helper", "team-a"))
    async with serving(tmp_path, model) as agents:
        assert (await agents.ask("team-a/helper"))["tools"] == ["there"]
        assert (await agents.ask())["tools"] == ["here", "there"]


async def test_agents_and_their_tools_come_change_and_go_with_their_files(
    tmp_path: Path, model: ModelServer
) -> None:
    file = tmp_path / "agent.yaml"
    write(tmp_path / "tools.yaml", *a_tool("first"))
    async with serving(tmp_path, model) as agents:
        await agents.refuses("helper", 404, "one of: beckon")
        write(file, agent("helper", systemPrompt="Before."))
        await agents.serves("helper", system="Before.", tools=["first"])
        write(file, agent("helper", systemPrompt="After."))
        await agents.serves("helper", system="After.")
        write(tmp_path / "more.yaml", *described("second", "svc"))
        await agents.serves("helper", tools=["first", "second"])
        file.unlink()
        await agents.refuses("helper", 404, "one of: beckon")
        await agents.serves("beckon", system=OWN)


async def test_an_agent_of_the_services_name_takes_the_place_of_its_own(
    tmp_path: Path, model: ModelServer
) -> None:
    write(tmp_path / "agent.yaml", agent("beckon", systemPrompt="Instead."))
    async with serving(tmp_path, model) as agents:
        await agents.serves("beckon", system="Instead.")


async def test_an_agent_with_mistakes_is_refused_and_the_log_says_what_to_write(
    tmp_path: Path, model: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "agent.yaml", agent("helper", quotas=[{"of": "cups", "limit": 1, "seconds": 1}]))
    async with serving(tmp_path, model) as agents:
        status, code, message = await agents.error("helper")
    (line,) = [one.getMessage() for one in caplog.records if "helper" in one.getMessage()]

    assert (status, code) == (503, "agent_not_ready")
    assert "beckon check" in message
    assert "InvalidSpec: spec.quotas[0].of" in line


async def test_the_key_of_an_agents_model_is_a_file_and_a_changed_one_is_read_again(
    tmp_path: Path, model: ModelServer
) -> None:
    manifests, secrets = tmp_path / "manifests", tmp_path / "secrets"
    manifests.mkdir()
    (secrets / "their-model").mkdir(parents=True)
    (secrets / "their-model" / "api-key").write_text("first-key\n")
    model.keys = {KEY, "first-key"}
    reference = {"baseURL": model.url, "name": "m", "apiKeySecret": {"name": "their-model"}}
    write(manifests / "agent.yaml", agent("helper", model=reference))
    async with serving(manifests, model, secrets) as agents:
        await agents.serves("helper", model="m")
        assert model.requests[-1].headers["authorization"] == "Bearer first-key"
        model.keys = {"second-key"}
        (secrets / "their-model" / "api-key").write_text("second-key")

        async def answers_again() -> bool:
            return (await agents.post("helper")).status_code == 200

        await eventually(answers_again)


@pytest.mark.parametrize(
    ("there", "said"),
    [
        (False, "set BECKON_SECRETS to a folder that has the key in the file their-model/api-key"),
        (True, "their-model/api-key; write the key there"),
    ],
)
async def test_a_key_that_is_not_there_is_requested_in_the_log(
    there: bool, said: str, tmp_path: Path, model: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    reference = {"baseURL": model.url, "apiKeySecret": {"name": "their-model"}}
    write(tmp_path / "agent.yaml", SERVICE, agent("helper", model=reference))
    async with serving(tmp_path, model, tmp_path if there else None) as agents:
        await agents.refuses("helper", 503, "SecretNotFound")

    assert any(said in one.getMessage() for one in caplog.records)
