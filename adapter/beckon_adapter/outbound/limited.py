"""HTTP answers with a size limit."""

from collections.abc import AsyncIterator

import httpx2

from beckon_adapter.outbound.egress import TooLarge


class LimitedTransport(httpx2.AsyncBaseTransport):
    """Sends through an existing client; `limit` is in bytes per answer.

    The client belongs to other code and is used as it is.
    """

    def __init__(self, client: httpx2.AsyncClient, limit: int) -> None:
        self._client = client
        self._limit = limit

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return the answer to a request; reading it raises `TooLarge`."""
        request.headers["accept-encoding"] = "identity"
        answer = await self._client.send(request, stream=True, auth=None, follow_redirects=False)
        if answer.headers.get("content-encoding", "identity") != "identity":
            await answer.aclose()
            raise httpx2.DecodingError("answered in an encoding that nobody asked for", request=request)
        return httpx2.Response(
            answer.status_code, headers=answer.headers, stream=_Limited(answer, self._limit), request=request
        )


class _Limited(httpx2.AsyncByteStream):
    def __init__(self, answer: httpx2.Response, limit: int) -> None:
        self._answer = answer
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._answer.aiter_raw():
            size += len(chunk)
            if size > self._limit:
                raise TooLarge(f"answered with more than {self._limit} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._answer.aclose()
