"""The HTTP client for subscribers and dead-letter sinks."""

from types import TracebackType
from typing import Protocol, Self

import aiohttp

from beckon_broker.answers import Answer

# Below the 5 s after which uvicorn and Node close an idle connection, so that the broker is
# the first to let go: a POST on a connection the other side has just closed is lost.
_IDLE_SECONDS = 4.0
_MAX_ERROR_BYTES = 16 * 1024

Headers = list[tuple[str, str]]


class NoAnswer(Exception):
    """The request brought no complete HTTP answer; the message says why."""


class Post(Protocol):
    """Sends one request and returns its answer of any status; raises `NoAnswer`."""

    async def __call__(self, url: str, headers: Headers, body: bytes, timeout: float) -> Answer:
        """POST these bytes; `timeout` is the seconds until the answer is complete."""
        ...


class Sender:
    """An unlimited pool of connections.

    The dispatcher limits the deliveries in progress.
    """

    def __init__(self, max_answer_bytes: int) -> None:
        self._max_answer_bytes = max_answer_bytes

    async def __aenter__(self) -> Self:
        """Open the pool."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            headers={"Accept-Encoding": "identity", "User-Agent": "beckon-broker"},
            # An absent content type would be declared application/octet-stream.
            skip_auto_headers=("Content-Type",),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the pool."""
        await self._session.close()

    async def post(self, url: str, headers: Headers, body: bytes, timeout: float) -> Answer:
        """POST these bytes and read the answer up to the limit; redirects are answers, too.

        Raises `NoAnswer`.
        """
        try:
            async with self._session.post(
                url,
                data=body,
                headers=headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=timeout),
            ) as response:
                success = 200 <= response.status < 300
                limit = self._max_answer_bytes if success else _MAX_ERROR_BYTES
                received, complete = await _read(response.content, limit)
                return Answer(response.status, response.raw_headers, received, complete)
        except TimeoutError:
            raise NoAnswer(f"no answer within {timeout:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise NoAnswer(_reason(error)) from None


async def _read(content: aiohttp.StreamReader, limit: int) -> tuple[bytes, bool]:
    """Return the body up to the limit in bytes, and True if complete."""
    received = bytearray()
    async for chunk in content.iter_any():
        received += chunk
        if len(received) > limit:
            return bytes(received[:limit]), False
    return bytes(received), True


def _reason(error: Exception) -> str:
    """Return the cause of a failed request.

    The client library's additions to it are left out.
    """
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect to {error.host}:{error.port}: {error.os_error.strerror or error.os_error}"
    return str(error) or type(error).__name__
