"""Health, readiness and metrics over HTTP."""

import socket
from collections.abc import Callable

from aiohttp import web

from beckon_contract.origins import OriginPolicy
from beckon_operator.metrics import Metrics
from beckon_operator.serving import serve
from beckon_runtime.connections import ConnectionLimits


class Health:
    """Answers `/healthz`, `/readyz` and `/metrics`; ready is what has nothing in `why_unready`."""

    def __init__(self, metrics: Metrics, why_unready: Callable[[], str]) -> None:
        self._metrics = metrics
        self._why_unready = why_unready
        self._app = app = web.Application()
        app.router.add_get("/healthz", self._alive)
        app.router.add_get("/readyz", self._ready)
        app.router.add_get("/metrics", self._count)
        self._runner: web.AppRunner | None = None

    async def start(self, listener: socket.socket, policy: OriginPolicy, limits: ConnectionLimits) -> None:
        """Serve on a socket that is bound."""
        self._runner = await serve(self._app, listener, policy, limits)

    async def stop(self) -> None:
        """Close every connection."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _alive(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _ready(self, _: web.Request) -> web.Response:
        why = self._why_unready()
        return web.Response(status=503 if why else 200, text=f"{why or 'ok'}\n")

    async def _count(self, _: web.Request) -> web.Response:
        headers = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        return web.Response(body=self._metrics.text(), headers=headers)
