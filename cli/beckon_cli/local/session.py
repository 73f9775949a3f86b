"""An agent to talk to: the one that runs, or a platform of our own for as long as it takes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from beckon_cli.client import AgentClient, is_agent
from beckon_cli.errors import CommandError
from beckon_cli.local.platform import Platform
from beckon_cli.local.ports import free_ports, is_free
from beckon_cli.output import err
from beckon_cli.settings import Settings


@contextlib.asynccontextmanager
async def agent_session(settings: Settings) -> AsyncIterator[AgentClient]:
    """Yield a client of the agent that runs; where none does, of a platform that ends with this session."""
    if await is_agent(settings.url):
        async with AgentClient(settings.url, settings.api_key.get_secret_value()) as client:
            yield client
        return
    if not is_free(settings.host, settings.port):
        settings = settings.model_copy(update={"port": next(free_ports(settings.host, settings.port + 1))})
    key = settings.api_key.get_secret_value()
    async with running_platform(settings) as platform, AgentClient(platform.settings.url, key) as client:
        yield client


@contextlib.asynccontextmanager
async def running_platform(settings: Settings) -> AsyncIterator[Platform]:
    """Yield a platform that runs and follows its manifests; whatever happens, end it."""
    if not settings.manifests.is_dir():
        cure = "name one with --manifests (beckon up) or BECKON_MANIFESTS"
        raise CommandError(f"there is no folder {settings.manifests}; {cure}", status=2)
    with err.status("starting the local platform …") as status:
        platform = Platform(settings, tell=lambda line: status.update(f"{line} …"))
        try:
            await platform.start()
        except BaseException:
            await asyncio.shield(platform.stop())
            raise
    following = asyncio.create_task(platform.follow())
    try:
        yield platform
    finally:
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following
        await asyncio.shield(platform.stop())
