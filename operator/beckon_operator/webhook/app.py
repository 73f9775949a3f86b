"""The webhook's HTTP: `/mutate` for the API server, health and metrics.

Health and metrics have a port of their own.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from aiohttp import web

from beckon_operator.webhook.metrics import WebhookMetrics
from beckon_operator.webhook.reviews import Malformed, Outcome, answer_review
from beckon_runtime.problem import MEDIA_TYPE, Problem

MAX_BODY = 4 * 1024 * 1024  # bytes; an object has at most 1.5 MiB in etcd, an update carries two
_BODY_SECONDS = 10.0

logger = logging.getLogger("beckon_operator.webhook")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Draining:
    """The shutdown state; once it has begun, answers close their connections."""

    def __init__(self) -> None:
        self.begun = False


def review_app(metrics: WebhookMetrics, draining: Draining) -> web.Application:
    """Return the application for admission reviews."""

    async def mutate(request: web.Request) -> web.Response:
        body = await _json_body(request)
        try:
            found = answer_review(body)
        except Malformed as error:
            metrics.count_review("malformed")
            raise _refuse_review(400, "malformed-review", "Not an AdmissionReview", str(error)) from None
        metrics.count_review(found.outcome)
        if found.outcome not in {Outcome.NOTHING, Outcome.PRESENT}:
            logger.info("schemaData of EventType %s: %s", found.subject, found.outcome)
        response = web.json_response(found.to_review())
        if draining.begun:
            response.force_close()
        return response

    app = web.Application(middlewares=[_answer_problems], client_max_size=MAX_BODY)
    app.on_response_prepare.append(_hide_server)
    app.router.add_post("/mutate", mutate)
    return app


def health_app(metrics: WebhookMetrics, why_not_ready: Callable[[], str | None]) -> web.Application:
    """Return the application for probes and Prometheus."""

    async def healthz(_: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def readyz(_: web.Request) -> web.Response:
        reason = why_not_ready()
        if reason is not None:
            raise _refuse_review(503, "not-ready", "Not ready", reason)
        return web.json_response({"status": "ready"})

    async def show_metrics(_: web.Request) -> web.Response:
        return web.Response(body=metrics.to_text(), content_type="text/plain", charset="utf-8")

    app = web.Application(middlewares=[_answer_problems], client_max_size=1024)
    app.on_response_prepare.append(_hide_server)
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", show_metrics)
    return app


class _RefusedReview(Exception):
    """A request answered with a problem document."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


def _refuse_review(status: int, slug: str, title: str, detail: str) -> _RefusedReview:
    return _RefusedReview(Problem(status, slug, title, detail))


async def _json_body(request: web.Request) -> bytes:
    if request.content_type != "application/json":
        raise _refuse_review(
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
        raise _refuse_review(408, "slow-request", "Request timeout", detail) from None


@web.middleware
async def _answer_problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer every error as a problem document, never with a traceback."""
    headers: dict[str, str] = {}
    try:
        return await handler(request)
    except _RefusedReview as refused:
        problem = refused.problem
    except web.HTTPException as error:
        problem = Problem(error.status, "http", error.reason, _error_detail(error))
        headers = {name: value for name, value in error.headers.items() if name == "Allow"}
    except Exception:
        logger.exception("a request failed")
        problem = Problem(500, "internal", "Internal error", "the webhook failed; its log says why")
    return web.Response(
        status=problem.status, body=problem.body(), content_type=MEDIA_TYPE, headers=headers or None
    )


async def _hide_server(_: web.Request, response: web.StreamResponse) -> None:
    """Hide the server software from clients."""
    response.headers["Server"] = "beckon-webhook"


def _error_detail(error: web.HTTPException) -> str:
    match error:
        case web.HTTPRequestEntityTooLarge():
            return f"the body is larger than {MAX_BODY} bytes"
        case web.HTTPMethodNotAllowed():
            return f"use {' or '.join(sorted(error.allowed_methods))}"
        case _:
            return "reviews are taken at POST /mutate; health is on another port"
