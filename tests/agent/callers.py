"""Callers of a service under test, by the header `x-owner`."""

from starlette.types import ASGIApp, Receive, Scope, Send

from beckon_agent.core.context import ANONYMOUS, Principal, acting_as


class CallerByHeader:
    """Sets the principal of a request to the name in its header; without one it is anonymous."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            named = dict(scope["headers"]).get(b"x-owner", b"").decode()
            who = Principal(named, frozenset(), "key") if named else ANONYMOUS
            scope.setdefault("state", {})["principal"] = who
            with acting_as(who):
                await self._app(scope, receive, send)
        else:
            await self._app(scope, receive, send)
