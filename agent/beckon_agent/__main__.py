"""The agent service: reads its settings, builds its parts, serves until it is told to stop."""

import asyncio
import gc
import logging.config
import sys

import aiohttp
import uvicorn
from pydantic import ValidationError
from uvicorn.loops.auto import auto_loop_factory

from beckon_agent.app import build_app
from beckon_agent.calls import Caller
from beckon_agent.catalogue.folder import FolderSource
from beckon_agent.dispatch import Dispatcher
from beckon_agent.metrics import Metrics
from beckon_agent.model.client import ModelClient
from beckon_agent.runs import Agent, Limits
from beckon_agent.service import Service
from beckon_agent.settings import Settings
from beckon_agent.turns import Model
from beckon_contract.logs import log_config

logger = logging.getLogger("beckon_agent")


def main() -> int:
    """Run the agent; return the exit status."""
    try:
        settings = Settings()
    except ValidationError as error:
        first = error.errors()[0]
        print(f"beckon_agent: {first['loc'][0]}: {first['msg']}", file=sys.stderr)
        return 2
    readable = sys.stderr.isatty()
    logging.config.dictConfig(log_config("agent", readable=readable, level=settings.log_level))
    with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
        return runner.run(_serve(settings))


async def _serve(settings: Settings) -> int:
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), cookie_jar=aiohttp.DummyCookieJar()
    ) as session:
        app = build_app(_service(settings, session), max_request_bytes=settings.max_request_bytes)
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                host=settings.host,
                port=settings.port,
                log_config=None,
                access_log=False,
                timeout_keep_alive=120,  # longer than the idle time of Go's clients, which is 90 s
                timeout_graceful_shutdown=10,
            )
        )
        gc.freeze()
        await server.serve()
    return 0 if server.started else 2


def _service(settings: Settings, session: aiohttp.ClientSession) -> Service:
    limits = Limits(
        steps=settings.max_steps,
        seconds=settings.max_seconds,
        tokens=settings.max_tokens,
        parallel_calls=settings.parallel_calls,
        result_chars=settings.max_result_chars,
    )
    agent = Agent(settings.agent_name, settings.agent_namespace, settings.system_prompt, limits)
    client = ModelClient(
        base_url=settings.openai_base_url,
        api_key=settings.openai_api_key.get_secret_value(),
        model=settings.model,
    )
    dispatcher = Dispatcher(session, settings.shim_url)
    return Service(
        agents={agent.name: agent},
        model=Model(client, settings.dialect),
        catalogue=FolderSource(settings.folders(), agent.source),
        caller=Caller(dispatcher, settings.call_timeout),
        metrics=Metrics(),
        max_runs=settings.max_runs,
    )


if __name__ == "__main__":
    sys.exit(main())
