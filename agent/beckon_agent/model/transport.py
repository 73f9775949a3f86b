"""One HTTP exchange with a model's server: a body goes out, JSON payloads come back.

The bytes of the answer are read by `sse`, and errors by `errors`, because many servers send what no typed
client takes: `choices: null`, arguments as an object. The client is aiohttp: by the `openai` package an
exchange takes three times the CPU, and 16 MB (`docs/decisions`, 14).
"""

import ssl
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from urllib.parse import SplitResult, quote, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import truststore

from beckon_agent.core import json_values
from beckon_agent.model.errors import ErrorReader, ModelError, ModelUnavailable
from beckon_agent.model.sse import UnreadableAnswer, read_payloads
from beckon_agent.telemetry.run_spans import record_answer, trace_header

# Shorter than any server keeps an idle connection: uvicorn closes one after 5 s, the shortest time known.
_KEEP_ALIVE_SECONDS = 4.0
_LONGEST_HEADER = 65_536
_MOST_OF_AN_ERROR = 262_144
_MOST_OF_A_LIST = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Patience:
    """The waits and tries of a client; all times in seconds."""

    attempts: int = 4
    """Tries before the first token, the first included."""

    first_wait: float = 0.5
    """The wait before the second try; it doubles from try to try, with jitter."""

    longest_wait: float = 8.0
    """No wait of our own choice is longer."""

    longest_retry_after: float = 60.0
    """A server that asks for a longer wait is not tried again."""

    connect: float = 10.0
    """The time to connect."""

    silence: float = 600.0
    """The time between two pieces of an answer; a local model may read a long prompt for minutes."""


class Transport:
    """The connections to one server."""

    def __init__(self, base_url: str, api_key: str, patience: Patience) -> None:
        """Check the address and the key; nothing is sent yet. Raises `ValueError`."""
        address = urlsplit(base_url)
        if address.scheme not in ("http", "https") or not address.netloc:
            raise ValueError("the model's base URL must be like http://127.0.0.1:11434/v1")
        key = api_key.strip()
        if not key.isascii() or not key.isprintable():
            raise ValueError(
                "the API key holds characters that no HTTP header can carry; was it copied whole?"
            )
        self._base = base_url.rstrip("/")
        self._errors = ErrorReader(address.netloc.rpartition("@")[2], key)
        self._headers = {"accept": "application/json", "user-agent": "beckon-agent"}
        if key and address.username is None:
            self._headers["authorization"] = f"Bearer {key}"
        self._secure = address.scheme == "https"
        self._proxy = _proxy_for(address)
        self._timeout = aiohttp.ClientTimeout(sock_connect=patience.connect, sock_read=patience.silence)
        self._opened: aiohttp.ClientSession | None = None
        self.server = ""
        """The name that the server gave in its last answer, of the header `Server`."""

    async def stream_completion(
        self, body: Mapping[str, object], whole: Callable[[], object] = lambda: None
    ) -> AsyncGenerator[Mapping[str, object]]:
        """Send a chat completion request; yield the payloads of its answer.

        `whole` is called when the server marks the answer as complete (`sse.read_payloads`). Raises
        `ModelError` for every failure of the exchange.
        """
        begun = recorded = False
        headers = {**self._headers, "content-type": "application/json", **trace_header()}
        url, data = self._url_of("chat/completions"), json_values.to_json(body).encode()
        try:
            async with self._open_session.post(
                url, data=data, headers=headers, proxy=self._proxy
            ) as response:
                begun = True
                self.server = response.headers.get("server", "")
                await self._raise_for_status(response)
                async with aclosing(read_payloads(response.content.iter_any(), whole)) as received:
                    async for event, payload, _ in received:
                        refused = self._errors.in_answer(event, payload)
                        if refused:
                            raise refused
                        document = json_values.as_mapping(payload)
                        recorded = recorded or record_answer(document, streamed=body.get("stream") is True)
                        yield document
        except (aiohttp.ClientError, OSError, UnreadableAnswer) as error:
            raise self._to_model_error(error, begun=begun) from None

    async def list_models(self) -> list[str]:
        """Return the names of the server's listed models, none without a list. Raises `ModelError`."""
        try:
            listed = json_values.parse_json(await self._fetch_path("models"))
        except ValueError:
            listed = None
        entries = json_values.as_mapping(listed).get("data")
        names = (
            json_values.as_text(json_values.as_mapping(entry).get("id"))
            for entry in json_values.as_sequence(entries)
        )
        return [name for name in names if name]

    async def fetch_properties(self) -> Mapping[str, object]:
        """Return the properties that llama.cpp's server shows beside its API. Raises `ModelError`."""
        try:
            return json_values.as_mapping(json_values.parse_json(await self._fetch_path("../props")))
        except ValueError:
            return {}

    async def has_model(self, model: str) -> bool:
        """True if the server has a model, listed or not. Raises `ModelError`, except for a 404."""
        try:
            await self._fetch_path(f"models/{quote(model, safe='')}")
        except ModelError as error:
            if error.status == 404:
                return False
            raise
        return True

    def no_model_list_error(self) -> ModelUnavailable:
        """Return the error of a server without a list of models."""
        return self._errors.to_unavailable("gives no list of models; does its base URL end in /v1?")

    def no_answer_error(self) -> ModelUnavailable:
        """Return the error of an answer ended before it began."""
        return self._errors.to_unavailable("ended its answer before it began")

    async def aclose(self) -> None:
        """Close the connections."""
        if self._opened is not None:
            await self._opened.close()

    @property
    def _open_session(self) -> aiohttp.ClientSession:
        """The connections, opened at their first use. There is no event loop before."""
        if self._opened is None:
            # What this machine trusts, as its other programs do.
            trust = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if self._secure else True
            self._opened = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_SECONDS, ssl=trust),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=self._timeout,
                max_line_size=_LONGEST_HEADER,
                max_field_size=_LONGEST_HEADER,
            )
        return self._opened

    def _url_of(self, path: str) -> str:
        return f"{self._base}/{path}"

    async def _fetch_path(self, path: str) -> bytes:
        begun = False
        try:
            async with self._open_session.get(
                self._url_of(path), headers=self._headers, proxy=self._proxy
            ) as response:
                begun = True
                await self._raise_for_status(response)
                return await _read_beginning(response, _MOST_OF_A_LIST)
        except (aiohttp.ClientError, OSError) as error:
            raise self._to_model_error(error, begun=begun) from None

    async def _raise_for_status(self, response: aiohttp.ClientResponse) -> None:
        """Raise the error in a response with an error or redirect status."""
        if not response.ok or response.status >= 300:
            beginning = await _read_beginning(response, _MOST_OF_AN_ERROR)
            raise self._errors.read_response(response.status, response.headers, beginning)

    def _to_model_error(self, error: Exception, *, begun: bool) -> ModelError:
        """Return our error for an error of the transport. `begun` is True if the answer had begun."""
        match error:
            case UnreadableAnswer():
                reason = f"sent what is no chat completion: {error}"
            case TimeoutError() if begun:
                reason = "fell silent in the middle of its answer"
            case TimeoutError():
                reason = "did not answer in time"
            case _:
                reason = f"{'dropped the connection' if begun else 'cannot be reached'}: {error}"
        return self._errors.to_unavailable(reason)


async def _read_beginning(response: aiohttp.ClientResponse, most: int) -> bytes:
    """Return the first `most` bytes of a body."""
    content = bytearray()
    async for chunk in response.content.iter_any():
        content += chunk
        if len(content) >= most:
            break
    return bytes(content[:most])


def _proxy_for(address: SplitResult) -> str | None:
    """Return the environment's proxy for an address. It comes from the variables known to curl."""
    if proxy_bypass(address.hostname or ""):
        return None
    proxies = getproxies()
    return proxies.get(address.scheme) or proxies.get("all")
