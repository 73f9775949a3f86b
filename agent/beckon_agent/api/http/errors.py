"""Errors as clients expect them: OpenAI's shape under /v1/, problem details (RFC 9457) elsewhere."""

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Literal

from pydantic import Field
from starlette.responses import JSONResponse, Response
from typing_extensions import TypedDict

from beckon_agent.api.http.openapi import Answers, describe_errors
from beckon_agent.auth.quotas import LimitReached
from beckon_agent.core.context import request_id
from beckon_agent.model.errors import (
    ContentNotSupported,
    ContextTooLong,
    FieldNotSupported,
    InvalidOutput,
    ModelAuthError,
    ModelError,
    QuotaExhausted,
    ToolChoiceNotHonoured,
)
from beckon_agent.service import NoRoom
from beckon_agent.store.base import StoreUnavailable
from beckon_runtime.logs import point_to_log
from beckon_runtime.problem import MEDIA_TYPE, Problem, ProblemError

logger = logging.getLogger(__name__)

STORE_UNAVAILABLE = (
    "the agent's store cannot be read or written now, and this request needs it; try again shortly. "
    "Chat completions that are not stored are still answered"
)


class ErrorFields(TypedDict):
    """The members of OpenAI's error object."""

    message: str
    type: Literal["invalid_request_error", "rate_limit_error", "server_error", "insufficient_quota"]
    param: str | None
    code: str | None


class ErrorDocument(TypedDict):
    """OpenAI's error answer."""

    error: ErrorFields


class ApiError(Exception):
    """An error answer in OpenAI's shape.

    `message` says what to do about it. `retry_after`, in seconds, is sent with 429 and 503 only, and not if
    no wait helps.
    """

    def __init__(
        self, status: int, message: str, *, code: str, param: str | None = None, retry_after: int = 1
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.retry_after = retry_after

    def to_document(self) -> ErrorDocument:
        """Return OpenAI's error object."""
        fields: ErrorFields = {
            "message": self.message,
            "type": "invalid_request_error" if self.status < 500 else "server_error",
            "param": self.param,
            "code": self.code,
        }
        if self.status == 429:
            fields["type"] = "insufficient_quota" if self._is_final else "rate_limit_error"
        return {"error": fields}

    def to_response(self) -> JSONResponse:
        """Return the whole HTTP answer."""
        headers = {"retry-after": str(self.retry_after)} if self.status in (429, 503) else {}
        if self._is_final:  # OpenAI's packages obey this header, and would repeat a request after every 429
            headers = {"x-should-retry": "false"}
        return JSONResponse(self.to_document(), self.status, headers=headers)

    @property
    def _is_final(self) -> bool:
        return self.code == QuotaExhausted.ours


EXPECTED = (ModelError, NoRoom, LimitReached, StoreUnavailable)
"""What ends a run, or keeps one from beginning, and is not a mistake of this service."""


_WAITING = {"rate_limit_exceeded": 429, "overloaded": 503, QuotaExhausted.ours: 429}


def to_api_error(error: Exception) -> ApiError:
    """Return the answer for an error of a run.

    Errors of the store, of the model and of this service are logged, with the request's id.
    """
    match error:
        case ApiError():
            return error
        case NoRoom():
            return ApiError(503, str(error), code="overloaded")
        case LimitReached():
            return ApiError(429, str(error), code="rate_limit_exceeded", retry_after=error.retry_after)
        case StoreUnavailable():
            logger.warning("request %s: the store does not answer: %s", request_id(), error)
            return ApiError(503, STORE_UNAVAILABLE, code="store_unavailable")
        case ContextTooLong() | FieldNotSupported() | InvalidOutput() | ToolChoiceNotHonoured():
            return ApiError(400, str(error), code=error.ours, param=error.param)
        case ContentNotSupported():
            message = f"the agent's model does not take what was sent: {error}"
            return ApiError(400, message, code=error.ours, param=error.param)
        case ModelError():
            logger.warning("request %s: the model failed: %s", request_id(), error)
            # The model server is upstream of this service.
            return ApiError(
                _WAITING.get(error.ours, 502),
                f"the model server failed: {error}{_find_cure(error)}",
                code=error.ours or "model_error",
                retry_after=max(1, math.ceil(error.retry_after or 0)),
            )
        case _:
            logger.error("request %s: the run failed", request_id(), exc_info=error)
            message = f"an unexpected error; {point_to_log('agent', request_id())}"
            return ApiError(500, message, code="internal_error")


def _find_cure(error: ModelError) -> str:
    """Return the cure of a model's failure, for the operator."""
    if isinstance(error, QuotaExhausted):
        return "; the agent's operator has to raise the limit of the account behind its key"
    if isinstance(error, ModelAuthError):
        return "; check OPENAI_API_KEY, or the Secret that the Agent names"
    if error.status == 404:
        return (
            "; check BECKON_MODEL, and that OPENAI_BASE_URL is the address before /chat/completions, "
            "or name and baseURL of the Agent's model"
        )
    return ""


def openai_responses(**meanings: str) -> Answers:
    """Return the OpenAPI of error answers in OpenAI's shape; see `describe_errors`."""
    return describe_errors(ErrorDocument, "application/json", **meanings)


@contextmanager
def api_errors() -> Iterator[None]:
    """Turn expected errors of the engine and the store into `ApiError`."""
    try:
        yield
    except EXPECTED as error:
        raise to_api_error(error) from error


class ProblemDocument(TypedDict):
    """A problem document (RFC 9457); it may have more members."""

    type: Annotated[str, Field(json_schema_extra={"format": "uri"})]
    title: str
    status: int
    detail: str


def to_problem(error: Exception) -> ProblemError:
    """Return the problem document of an error of a request or a run."""
    api_error = to_api_error(error)
    title = api_error.code.replace("_", " ").capitalize()
    members = {"retry_after": api_error.retry_after} if api_error.status in (429, 503) else {}
    return ProblemError(
        Problem(api_error.status, api_error.code.replace("_", "-"), title, api_error.message, members)
    )


def problem_response(problem: Problem) -> Response:
    """Return the HTTP answer of a problem.

    For 429 and 503 its member `retry_after`, in seconds, is a header as well, 1 by default.
    """
    headers = None
    if problem.status in (429, 503):
        seconds = problem.members.get("retry_after")
        # Members may come from a tool: only a number becomes a header.
        headers = {"retry-after": str(seconds if isinstance(seconds, int) else 1)}
    return Response(problem.body(), problem.status, headers, MEDIA_TYPE)


def problem_responses(**meanings: str) -> Answers:
    """Return the OpenAPI of error answers as problem documents; see `describe_errors`."""
    return describe_errors(ProblemDocument, MEDIA_TYPE, **meanings)


_OPENAI_PATHS = "/v1/"
_CODES = {
    401: "invalid_api_key",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "body_timeout",
    413: "request_too_large",
    415: "unsupported_encoding",
    429: "rate_limit_exceeded",
    500: "internal_error",
    503: "unavailable",
}


def refuse_request(path: str, status: int, message: str, param: str | None = None) -> Response:
    """Return the answer to a refused request. The path decides its shape, the status its code."""
    code = _CODES.get(status, "invalid_request")
    if path.startswith(_OPENAI_PATHS):
        return ApiError(status, message, code=code, param=param).to_response()
    slug = code.replace("_", "-")
    return problem_response(Problem(status, slug, slug.replace("-", " ").capitalize(), message))
