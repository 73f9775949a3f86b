"""A session with an agent: a given one, the running one, or a temporary platform's."""

import contextlib
import getpass
import sys
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from beckon_cli.client import AgentClient, KeyRefused, is_agent
from beckon_cli.errors import CommandError
from beckon_cli.local.ports import free_ports, is_free
from beckon_cli.settings import Settings


@contextlib.asynccontextmanager
async def agent_session(settings: Settings, url: str = "") -> AsyncIterator[AgentClient]:
    """Yield a client of the agent at `url`, else of the running agent, else of a temporary platform.

    The platform ends with this session. If the agent's port is taken, it uses the next free one. An agent at
    a `url` that requires a key gets `BECKON_API_KEY`; without one, the key is read from the terminal.
    Raises `CommandError` for an agent that does not answer or refuses the key.
    """
    if url:
        async with _given_agent(_check_url(url), settings.api_key.get_secret_value()) as client:
            yield client
        return
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


async def find_agent(client: AgentClient, name: str) -> str:
    """Return the name of an agent of this service, by default its first.

    Raises `CommandError` for an unknown one.
    """
    known = await client.list_agents()
    if not known:
        raise CommandError(f"the service at {client.url} has no agent for you")
    if name and name not in known:
        raise CommandError(f"there is no agent {name!r}; choose one of: {', '.join(known)}", status=2)
    return name or known[0]


@contextlib.asynccontextmanager
async def _given_agent(url: str, key: str) -> AsyncIterator[AgentClient]:
    if not key and sys.stdin.isatty() and await _requires_key(url):
        try:
            key = getpass.getpass(f"API key for {url}: ").strip()
        except EOFError:
            raise CommandError("no API key; type one, or set BECKON_API_KEY", status=2) from None
    async with AgentClient(url, key) as client:
        yield client


async def _requires_key(url: str) -> bool:
    async with AgentClient(url) as client:
        try:
            await client.list_agents()
        except KeyRefused:
            return True
    return False


def _check_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or parts.username is not None or parts.query or parts.fragment:
        raise CommandError("--url is no URL of an agent; write for instance https://agent.example", status=2)
    return url.rstrip("/")
