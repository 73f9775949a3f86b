"""Free ports for the processes of the local platform, and the servers that listen there."""

import asyncio
import contextlib
import errno
import json
import re
import socket
from collections.abc import AsyncIterator, Iterator
from urllib.parse import urlsplit

from beckon_cli.errors import CommandError

_ANSWER_SECONDS = 2.0
_GOOD = re.compile(rb"HTTP/1\.[01] [1-4]\d\d ")
NATS_PORT = 4222
_HIGHEST = 32_000  # above begins the range that outgoing connections take


def is_free(host: str, port: int) -> bool:
    """Return True if a server could listen on this port now.

    Raises `CommandError` if listening fails for another reason, such as a host of another machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                cure = "set BECKON_HOST to an address of this machine"
                raise CommandError(f"cannot listen on {host}: {error.strerror}; {cure}", status=2) from None
            return False
        return True


def free_ports(host: str, start: int) -> Iterator[int]:
    """Yield free ports from `start` upward, each once. Raises `CommandError` when there are no more."""
    for port in range(start, _HIGHEST if start < _HIGHEST else 65_536):
        if is_free(host, port):
            yield port
    raise CommandError(f"no port is free on {host} from {start} upward")


async def answers(url: str) -> bool:
    """Return True if a server answers `GET /healthz` without an error of its own, or greets as NATS does.

    A server that listens is waited for, so that a start is noticed at once and costs one request.
    """
    if not url.startswith("http"):
        return await _greets(url)
    try:
        async with asyncio.timeout(_ANSWER_SECONDS), _get(url, "/healthz") as response:
            return bool(_GOOD.match(await response.readline()))
    except (OSError, ValueError):  # the second: a line without an end
        return False


async def _greets(url: str) -> bool:
    """Return True if a NATS server takes a connection (NATS client protocol, INFO)."""
    address = urlsplit(url)
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection(address.hostname, address.port or NATS_PORT)
            try:
                return (await reader.readline()).startswith(b"INFO ")
            finally:
                writer.close()
    except (OSError, ValueError):  # the second: a line without an end
        return False


async def read_tool_count(agent: str) -> int | None:
    """Return the number of tools of an agent by its `GET /readyz`, `None` without an answer."""
    try:
        async with asyncio.timeout(_ANSWER_SECONDS), _get(agent, "/readyz") as response:
            _, _, body = (await response.read()).partition(b"\r\n\r\n")
            return int(json.loads(body)["tools"])
    except (OSError, ValueError, LookupError, TypeError):
        return None


@contextlib.asynccontextmanager
async def _get(url: str, path: str) -> AsyncIterator[asyncio.StreamReader]:
    """Yield the response to a GET, its head included; the server ends it by closing."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        head = f"GET {path} HTTP/1.1\r\nhost: {address.netloc}\r\nconnection: close\r\n\r\n"
        writer.write(head.encode())
        yield reader
    finally:
        writer.close()
