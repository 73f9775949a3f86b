"""One HTTP exchange with a model's server: a body goes out, JSON payloads come back.

Requests go through the `openai` package, with retries left to the client. Its typed
stream is not used: it raises on what many servers send (`choices: null`, arguments
as an object), so the bytes of the answer are read by `framing`.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx2
import openai

from beckon_agent.model import wire
from beckon_agent.model.errors import ModelError, ModelUnavailable
from beckon_agent.model.framing import UnreadableAnswer, payloads
from beckon_agent.model.refusals import ErrorReader
from beckon_agent.telemetry.models import trace_header


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a client waits and how often it tries; all times in seconds."""

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
        self._errors = ErrorReader(address.netloc.rpartition("@")[2], key)
        self._headers = {} if key else {"Authorization": openai.omit}
        self._openai = openai.AsyncOpenAI(
            base_url=base_url,
            # The package sends nothing without a key; a local server may well need none.
            api_key=key or "none",
            max_retries=0,
            timeout=httpx2.Timeout(patience.silence, connect=patience.connect),
        )

    async def exchange(self, body: Mapping[str, object]) -> AsyncGenerator[Mapping[str, object]]:
        """Send a chat completion request; yield the payloads of its answer.

        Raises `ModelError` for every way in which that can fail.
        """
        completions = self._openai.chat.completions.with_streaming_response
        try:
            async with (
                # Only `extra_body` goes out as it is: typed arguments are walked through first.
                completions.create(
                    model="",
                    messages=[],
                    extra_body=body,
                    extra_headers={**self._headers, **trace_header()},
                ) as response,
                aclosing(payloads(response.iter_bytes())) as received,
            ):
                async for event, data in received:
                    refused = self._errors.in_answer(event, data)
                    if refused:
                        raise refused
                    yield wire.mapping(data)
        except (openai.APIError, httpx2.HTTPError, UnreadableAnswer) as error:
            raise self._told(error) from None

    async def models(self) -> list[str]:
        """Return the names of the models that the server lists, none where it gives no list.

        Raises `ModelError`.
        """
        models = self._openai.models.with_raw_response
        try:
            listed = (await models.list(extra_headers=self._headers)).http_response.json()
        except (openai.APIError, httpx2.HTTPError) as error:
            raise self._told(error) from None
        except ValueError:
            listed = None
        entries = wire.mapping(listed).get("data")
        names = (wire.text(wire.mapping(entry).get("id")) for entry in wire.sequence(entries))
        return [name for name in names if name]

    async def knows(self, model: str) -> bool:
        """Whether the server has a model that it may not list. Raises `ModelError` but for a 404."""
        models = self._openai.models.with_raw_response
        try:
            await models.retrieve(model, extra_headers=self._headers)
        except openai.NotFoundError:
            return False
        except (openai.APIError, httpx2.HTTPError) as error:
            raise self._told(error) from None
        return True

    def unlisted(self) -> ModelUnavailable:
        """Return the error of a server that lists no model."""
        return self._errors.unavailable("gives no list of models; does its base URL end in /v1?")

    def silent(self) -> ModelUnavailable:
        """Return the error of an answer that ended before it began."""
        return self._errors.unavailable("ended its answer before it began")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._openai.close()

    def _told(self, error: Exception) -> ModelError:
        """Return our error for one of the transport's."""
        match error:
            case openai.APIStatusError(response=response):
                return self._errors.response(response.status_code, response.headers, response.content)
            case openai.APITimeoutError():
                reason = "did not answer in time"
            case openai.APIConnectionError():
                reason = f"cannot be reached: {error.__cause__}"
            case httpx2.TimeoutException():
                reason = "fell silent in the middle of its answer"
            case UnreadableAnswer():
                reason = f"sent what is no chat completion: {error}"
            case _:
                reason = f"dropped the connection: {error}"
        return self._errors.unavailable(reason)
