"""One webhook as a whole: two ports, the certificate keeper, the shutdown."""

import asyncio
import logging
import ssl

from aiohttp import web

from beckon_operator.serving import open_port, serve_app
from beckon_operator.webhook.app import Draining, health_app, review_app
from beckon_operator.webhook.cluster import WebhookCluster
from beckon_operator.webhook.keeper import CertificateRotator
from beckon_operator.webhook.metrics import WebhookMetrics
from beckon_operator.webhook.settings import WebhookSettings

logger = logging.getLogger("beckon_operator.webhook")


class WebhookService:
    """The webhook, served by `run` until its stop event.

    `url` and `health_url` are the addresses in use, and empty before.
    """

    def __init__(self, settings: WebhookSettings, cluster: WebhookCluster) -> None:
        self._settings = settings
        self._metrics = WebhookMetrics()
        self._keeper = CertificateRotator(cluster, settings.rotation_policy(), self._metrics)
        self._draining = Draining()
        self.url = self.health_url = ""

    async def run_until(self, stop: asyncio.Event) -> None:
        """Serve until `stop`; raise `CannotListen`."""
        runners: list[web.AppRunner] = []
        upkeep = asyncio.create_task(self._keeper.repeat_rounds(self._settings.poll_seconds))
        try:
            health = health_app(self._metrics, self._why_not_ready)
            port = self._settings.health_port
            runners.append(await self._serve_port(health, port, "BECKON_WEBHOOK_HEALTH_PORT"))
            self.health_url = _address_of(runners[0], "http")
            logger.info("health on %s", self.health_url)
            if await _wait_for_first(self._keeper.loaded, stop, upkeep):
                reviews = review_app(self._metrics, self._draining)
                tls = self._keeper.context
                runners.insert(0, await self._serve_port(reviews, self._settings.port, "BECKON_PORT", tls))
                self.url = _address_of(runners[0], "https")
                logger.info("takes reviews on %s", self.url)
                await _wait_for_first(stop, None, upkeep)
                await self._drain_requests()
        finally:
            upkeep.cancel()
            await asyncio.gather(upkeep, return_exceptions=True)
            for runner in runners:
                await runner.cleanup()

    async def _drain_requests(self) -> None:
        """Keep answering for the drain time; clients may still arrive."""
        self._draining.begun = True
        await asyncio.sleep(self._settings.drain_seconds)

    async def _serve_port(
        self, app: web.Application, port: int, setting: str, tls: ssl.SSLContext | None = None
    ) -> web.AppRunner:
        settings = self._settings
        listener = open_port(settings.host, port, setting)
        policy = settings.origin_policy(settings.host)
        # Either port may have part of the files, and calls to the API server need some.
        return await serve_app(app, listener, policy, settings.connection_limits(share=0.375), tls=tls)

    def _why_not_ready(self) -> str | None:
        if self._draining.begun:
            return "it is stopping"
        return self._keeper.problem or (None if self.url else "it is starting")


async def _wait_for_first(
    event: asyncio.Event, other: asyncio.Event | None, upkeep: asyncio.Task[None]
) -> bool:
    """Wait for either event; return True if the first is set.

    Raises the error of a keeper that has failed.
    """
    waits = {asyncio.create_task(one.wait()) for one in (event, other) if one is not None}
    try:
        await asyncio.wait({*waits, upkeep}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    if upkeep.done():
        upkeep.result()
    return event.is_set()


def _address_of(runner: web.AppRunner, scheme: str) -> str:
    host, port = runner.addresses[0][:2]
    return f"{scheme}://{host}:{port}"
