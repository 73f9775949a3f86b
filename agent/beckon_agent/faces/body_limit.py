"""A limit on the size of a request's body, before anything parses it."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from beckon_agent.faces.problems import problem_response
from beckon_contract.problem import Problem


class _TooLarge(Exception):
    """The body has passed the limit."""


class BodyLimit:
    """Answers 413 to a body larger than `limit` bytes, whether it says its length or not."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        read = 0
        begun = False

        async def limited() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._limit:
                raise _TooLarge
            return message

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, limited, watched)
        except _TooLarge:
            if begun:
                raise
            detail = (
                f"the body is larger than {self._limit} bytes; send less, or raise BECKON_MAX_REQUEST_BYTES"
            )
            answer = problem_response(Problem(413, "too-large", "Request too large", detail))
            await answer(scope, receive, send)
