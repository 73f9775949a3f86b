"""The application around the faces: what it keeps running, and what it does where that fails."""

import asyncio
import signal

import aiohttp
import pytest

from beckon_agent.agents.registry import AgentHandle, SingleAgent
from beckon_agent.app import build_app
from beckon_agent.core.run_types import Agent, Limits
from beckon_agent.model.client import ModelClient
from beckon_agent.run.model_turn import DialectModel
from beckon_agent.service import Service
from beckon_agent.telemetry.metrics import Metrics
from beckon_agent.tool_calls.caller import Dispatcher, ToolCaller
from beckon_contract.catalogue.builder import Catalogue
from tests.agent.running_agent import Still, open_door
from tests.patience import PATIENCE
from tests.serving import served


async def test_a_service_that_cannot_follow_its_tools_any_more_stops_to_be_started_anew(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fails() -> None:
        raise RuntimeError("a mistake of ours")

    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    try:
        async with (
            ModelClient("http://127.0.0.1:9/v1", "", "m") as client,
            aiohttp.ClientSession() as session,
        ):
            hosted = AgentHandle(
                "a", Agent("a", "n", "", Limits()), DialectModel(client, "native"), Still(Catalogue({}))
            )
            caller = ToolCaller(Dispatcher(session, "http://127.0.0.1:9"))
            service = Service(SingleAgent(hosted, fails), caller, Metrics(), max_runs=1)
            async with served(build_app(service, open_door, max_request_bytes=1000)):
                await asyncio.wait_for(stopped.wait(), PATIENCE)
    finally:
        loop.remove_signal_handler(signal.SIGTERM)

    assert "cannot be kept up to date any more; stopping" in caplog.text
    assert "a mistake of ours" in caplog.text
