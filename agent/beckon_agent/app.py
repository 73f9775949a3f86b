"""The agent's HTTP application: its faces, its limits, and one shape for each kind of error."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from beckon_agent.faces import catalogue, chat_completions, models, operations
from beckon_agent.faces.body_limit import BodyLimit
from beckon_agent.faces.openai_errors import FaceError
from beckon_agent.faces.problems import ProblemError, problem_response
from beckon_agent.service import Service
from beckon_contract.problem import Problem

logger = logging.getLogger(__name__)

_OPENAI_PATHS = "/v1/"


def build_app(service: Service, *, max_request_bytes: int) -> FastAPI:
    """Return the application; while it serves, the catalogue is kept up to date."""

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        watching = asyncio.create_task(service.catalogue.watch())
        try:
            yield
        finally:
            service.draining = True
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching

    app = FastAPI(title="Beckon agent", lifespan=lifespan, docs_url=None, redoc_url=None)
    for face in (chat_completions, models, catalogue, operations):
        app.include_router(face.router(service))
    app.add_middleware(BodyLimit, limit=max_request_bytes)
    _add_error_handlers(app)
    return app


def _add_error_handlers(app: FastAPI) -> None:
    @app.exception_handler(FaceError)
    async def face_error(_: Request, error: FaceError) -> Response:
        return error.response()

    @app.exception_handler(ProblemError)
    async def problem_error(_: Request, error: ProblemError) -> Response:
        return problem_response(error.problem)

    @app.exception_handler(RequestValidationError)
    async def invalid_request(request: Request, error: RequestValidationError) -> Response:
        message, field = _first_problem(error)
        return _answer(request, 400, message, code="invalid_request", param=field)

    @app.exception_handler(HTTPException)
    async def no_such_route(request: Request, error: HTTPException) -> Response:
        message = f"{request.method} {request.url.path}: {error.detail}"
        answer = _answer(request, error.status_code, message, code="not_found")
        answer.headers.update(error.headers or {})
        return answer

    @app.exception_handler(Exception)
    async def unexpected(request: Request, _: Exception) -> Response:
        message = "an unexpected error; the log of the agent has the details"
        return _answer(request, 500, message, code="internal_error")


def _answer(request: Request, status: int, message: str, *, code: str, param: str | None = None) -> Response:
    if request.url.path.startswith(_OPENAI_PATHS):
        return FaceError(status, message, code=code, param=param).response()
    slug = code.replace("_", "-")
    return problem_response(Problem(status, slug, slug.replace("-", " ").capitalize(), message))


def _first_problem(error: RequestValidationError) -> tuple[str, str | None]:
    """Return one sentence about the first thing that is wrong, and the field it is in."""
    found = error.errors()[0]
    if found["type"] == "json_invalid":
        return f"the body is not JSON: {found.get('ctx', {}).get('error', found['msg'])}", None
    field = ".".join(str(part) for part in found["loc"] if part != "body")
    return (f"{field}: {found['msg']}" if field else f"the body: {found['msg']}"), field or None
