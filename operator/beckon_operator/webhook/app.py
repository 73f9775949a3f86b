"""The webhook as a whole: HTTP for reviews and health, certificates, shutdown."""

import asyncio
import logging
import ssl

from aiohttp import web

from beckon_operator.serving import health_app, problem_app, refuse_request, serve_app
from beckon_operator.webhook.cluster import WebhookCluster
from beckon_operator.webhook.metrics import WebhookMetrics
from beckon_operator.webhook.reviews import Malformed, Outcome, answer_review
from beckon_operator.webhook.rotation import CertificateRotator
from beckon_operator.webhook.settings import WebhookSettings
from beckon_runtime.process import listen

MAX_BODY = 4 * 1024 * 1024  # bytes; an object has at most 1.5 MiB in etcd, an update carries two
_BODY_SECONDS = 10.0

logger = logging.getLogger("beckon_operator.webhook")


class Draining:
    """The shutdown state; once it has begun, answers close their connections."""

    def __init__(self) -> None:
        self.begun = False


def review_app(metrics: WebhookMetrics, draining: Draining) -> web.Application:
    """Return the application for admission reviews."""

    async def mutate(request: web.Request) -> web.Response:
        body = await _json_body(request)
        try:
            answer = answer_review(body)
        except Malformed as error:
            metrics.count_review("malformed")
            raise refuse_request(400, "malformed-review", "Not an AdmissionReview", str(error)) from None
        metrics.count_review(answer.outcome)
        if answer.outcome not in {Outcome.NOTHING, Outcome.PRESENT}:
            logger.info("schemaData of EventType %s: %s", answer.subject, answer.outcome)
        response = web.json_response(answer.to_review())
        if draining.begun:
            response.force_close()
        return response

    app = problem_app("beckon-webhook", MAX_BODY)
    app.router.add_post("/mutate", mutate)
    return app


async def _json_body(request: web.Request) -> bytes:
    if request.content_type != "application/json":
        raise refuse_request(
            415,
            "unsupported-media-type",
            "Unsupported media type",
            "send application/json, an AdmissionReview",
        )
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            return await request.read()
    except TimeoutError:
        detail = f"the body did not come within {_BODY_SECONDS:.0f} seconds"
        raise refuse_request(408, "slow-request", "Request timeout", detail) from None


class WebhookService:
    """The webhook, served by `run_until` until its stop event.

    `url` and `health_url` are the addresses in use, and empty before.
    """

    def __init__(self, settings: WebhookSettings, cluster: WebhookCluster) -> None:
        self._settings = settings
        self._metrics = WebhookMetrics()
        self._rotator = CertificateRotator(cluster, settings.rotation_policy(), self._metrics)
        self._draining = Draining()
        self.url = self.health_url = ""

    async def run_until(self, stop: asyncio.Event) -> None:
        """Serve until `stop`; raise `CannotListen`."""
        runners: list[web.AppRunner] = []
        upkeep = asyncio.create_task(self._rotator.repeat_rounds(self._settings.poll_seconds))
        try:
            health = health_app("beckon-webhook", self._metrics.to_text, self._why_not_ready)
            port = self._settings.health_port
            runners.append(await self._serve_port(health, port, "BECKON_WEBHOOK_HEALTH_PORT"))
            self.health_url = _address_of(runners[0], "http")
            logger.info("health on %s", self.health_url)
            if await _wait_for_first(self._rotator.loaded, stop, upkeep):
                reviews = review_app(self._metrics, self._draining)
                tls = self._rotator.context
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
        listener = listen(settings.host, port, f"set {setting} to another port")
        policy = settings.origin_policy(settings.host)
        # Either port may have part of the files, and calls to the API server need some.
        return await serve_app(app, listener, policy, settings.connection_limits(share=0.375), tls=tls)

    def _why_not_ready(self) -> str:
        if self._draining.begun:
            return "it is stopping"
        return self._rotator.problem or ("" if self.url else "it is starting")


async def _wait_for_first(
    event: asyncio.Event, other: asyncio.Event | None, upkeep: asyncio.Task[None]
) -> bool:
    """Wait for either event; return True if the first is set.

    Raises the error of the failed upkeep of the certificates.
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
