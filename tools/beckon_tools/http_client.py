"""Requests to web services: bounded in time and size, no redirects, every failure a `ToolError`."""

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import httpx
import orjson
from pydantic import BaseModel, ValidationError

from beckon_tools.errors import ToolError
from beckon_tools.settings import MAX_ANSWER_BYTES, USER_AGENT

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class EventAnswer:
    """The answer of a web service: its HTTP status and its JSON."""

    status: int
    document: object


@dataclass(frozen=True, slots=True)
class Outbound:
    """A client for one web service; `service` is its name for users.

    `timeout` in seconds is for the whole of one answer, `limit` in bytes for its body.
    """

    service: str
    timeout: float = 8
    limit: int = MAX_ANSWER_BYTES

    async def get_json(self, url: str, query: Mapping[str, str]) -> EventAnswer:
        """GET a JSON document; raise `ToolError` if there is none.

        Error statuses with a JSON body are returned, except 429 and 5xx: the caller knows their meaning.
        """
        headers = {"user-agent": USER_AGENT, "accept": "application/json"}
        try:
            async with (
                asyncio.timeout(self.timeout),
                httpx.AsyncClient(verify=_tls_context(), timeout=self.timeout, headers=headers) as client,
                client.stream("GET", url, params=query) as response,
            ):
                return self._to_answer(response.status_code, await self._read_body(response))
        except (httpx.TimeoutException, TimeoutError):
            raise ToolError(f"{self.service} did not answer within {self.timeout:g} seconds") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ToolError(f"{self.service} cannot be reached: {type(error).__name__}") from None

    def read(self, model: type[Model], document: object) -> Model:
        """Read a document as a model; raise `ToolError` for another form."""
        try:
            return model.model_validate(document)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise ToolError(
                f"{self.service} answered in a form that is not known: {where}: {first['msg']}"
            ) from None

    async def _read_body(self, response: httpx.Response) -> bytes:
        body = b""
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > self.limit:
                raise ToolError(f"{self.service} answered with more than {self.limit} bytes")
        return body

    def _to_answer(self, status: int, body: bytes) -> EventAnswer:
        if status == 429:
            raise ToolError(f"{self.service} takes no more requests for now (429); try later")
        if 300 <= status < 400 or status >= 500:
            raise ToolError(f"{self.service} answered with status {status}")
        try:
            return EventAnswer(status, orjson.loads(body))
        except orjson.JSONDecodeError:
            raise ToolError(f"{self.service} answered with status {status} and no JSON") from None


@cache
def _tls_context() -> ssl.SSLContext:
    """Return the TLS context, made once: reading the certificates takes tens of milliseconds."""
    return httpx.create_ssl_context()
