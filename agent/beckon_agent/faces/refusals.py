"""An error in the shape that its path speaks: OpenAI's under /v1/, a problem document elsewhere."""

from starlette.responses import Response

from beckon_agent.faces.openai_errors import FaceError
from beckon_agent.faces.problems import problem_response
from beckon_contract.problem import Problem

_OPENAI_PATHS = "/v1/"
_CODES = {
    401: "invalid_api_key",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "body_timeout",
    413: "request_too_large",
    429: "rate_limit_exceeded",
    500: "internal_error",
    503: "unavailable",
}


def refusal(path: str, status: int, message: str, param: str | None = None) -> Response:
    """Return the answer to a request that no face could take; the status decides its code."""
    code = _CODES.get(status, "invalid_request")
    if path.startswith(_OPENAI_PATHS):
        return FaceError(status, message, code=code, param=param).response()
    slug = code.replace("_", "-")
    return problem_response(Problem(status, slug, slug.replace("-", " ").capitalize(), message))
