"""One webhook as a whole: two listeners, the keeper of the certificates, and the way out."""

import asyncio
import logging
import os
import ssl

from aiohttp import web

from beckon_operator.webhook.app import Draining, health_app, review_app
from beckon_operator.webhook.cluster import Cluster
from beckon_operator.webhook.keeper import Keeper
from beckon_operator.webhook.metrics import Metrics
from beckon_operator.webhook.settings import Settings

# Longer than the API server keeps an idle connection (90 s in Go), so that it is the one who ends it.
_KEEP_ALIVE = 120.0
_LAST_ANSWERS = 3.0

logger = logging.getLogger("beckon_operator.webhook")


class CannotListen(Exception):
    """A port cannot be listened on; the message names it, its setting, and why."""


class Service:
    """The webhook, served by `run` until it is told to stop.

    `url` and `health_url` say where it listens, and are empty until it does.
    """

    def __init__(self, settings: Settings, cluster: Cluster) -> None:
        self._settings = settings
        self._metrics = Metrics()
        self._keeper = Keeper(cluster, settings.policy(), self._metrics)
        self._draining = Draining()
        self.url = self.health_url = ""

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop`; raise `CannotListen`."""
        reviews = _runner(review_app(self._metrics, self._draining))
        health = _runner(health_app(self._metrics, self._why_not_ready))
        keeping = asyncio.create_task(self._keeper.run(self._settings.poll_seconds))
        try:
            await self._listen(health, self._settings.health_port, "HEALTH_PORT")
            self.health_url = _url(health, "http")
            logger.info("health on %s", self.health_url)
            if await _first(self._keeper.loaded, stop, keeping):
                await self._listen(reviews, self._settings.port, "PORT", self._keeper.context)
                self.url = _url(reviews, "https")
                logger.info("takes reviews on %s", self.url)
                await _first(stop, None, keeping)
                await self._drain()
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            await reviews.cleanup()
            await health.cleanup()

    async def _drain(self) -> None:
        """Go on answering until nobody is sent here any more."""
        self._draining.begun = True
        await asyncio.sleep(self._settings.drain_seconds)

    async def _listen(
        self, runner: web.AppRunner, port: int, setting: str, context: ssl.SSLContext | None = None
    ) -> None:
        await runner.setup()
        host = self._settings.host
        try:
            await web.TCPSite(runner, host, port, ssl_context=context).start()
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise CannotListen(
                f"cannot listen on {host}:{port}: {reason}; set BECKON_WEBHOOK_{setting} to another port"
            ) from None

    def _why_not_ready(self) -> str | None:
        if self._draining.begun:
            return "it is stopping"
        return self._keeper.problem or (None if self.url else "it is starting")


def _runner(app: web.Application) -> web.AppRunner:
    return web.AppRunner(
        app,
        access_log=None,
        auto_decompress=False,
        keepalive_timeout=_KEEP_ALIVE,
        shutdown_timeout=_LAST_ANSWERS,
    )


async def _first(event: asyncio.Event, other: asyncio.Event | None, keeping: asyncio.Task[None]) -> bool:
    """Wait for one of the events; return whether it was the first. A keeper that dies is raised."""
    waits = {asyncio.create_task(one.wait()) for one in (event, other) if one is not None}
    try:
        await asyncio.wait({*waits, keeping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    if keeping.done():
        keeping.result()
    return event.is_set()


def _url(runner: web.AppRunner, scheme: str) -> str:
    host, port = runner.addresses[0][:2]
    return f"{scheme}://{host}:{port}"
