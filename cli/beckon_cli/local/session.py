"""A session with an agent: the running one, or a temporary platform's."""

import contextlib
from collections.abc import AsyncIterator

from beckon_cli.client import AgentClient, is_agent
from beckon_cli.local.ports import free_ports, is_free
from beckon_cli.settings import Settings


@contextlib.asynccontextmanager
async def agent_session(settings: Settings) -> AsyncIterator[AgentClient]:
    """Yield a client of the running agent, else of a temporary platform.

    The platform ends with this session. If the agent's port is taken, it uses the next free one.
    """
    if await is_agent(settings.url):
        async with AgentClient(settings.url, settings.api_key.get_secret_value()) as client:
            yield client
        return
    # Imported late: an agent that runs already needs no platform, which is a third of a second.
    from beckon_cli.local.running import running_platform  # noqa: PLC0415  # see above

    if not is_free(settings.host, settings.port):
        settings = settings.model_copy(update={"port": next(free_ports(settings.host, settings.port + 1))})
    key = settings.api_key.get_secret_value()
    async with running_platform(settings) as platform, AgentClient(platform.settings.url, key) as client:
        yield client
