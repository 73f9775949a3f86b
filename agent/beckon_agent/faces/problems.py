"""Errors of the routes that are Beckon's own: problem details (RFC 9457)."""

from typing import Any

from starlette.responses import Response

from beckon_contract.problem import MEDIA_TYPE, Problem

_SCHEMA = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
    "required": ["type", "title", "status", "detail"],
}


class ProblemError(Exception):
    """An answer that is a problem document."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


def problem_response(problem: Problem) -> Response:
    """Return the whole HTTP answer; its member `retry_after`, in seconds, is a header as well."""
    headers = None
    if problem.status in (429, 503):
        seconds = problem.members.get("retry_after")
        # Members may come from a tool: only a number becomes a header.
        headers = {"retry-after": str(seconds if isinstance(seconds, int) else 1)}
    return Response(problem.body(), problem.status, headers, MEDIA_TYPE)


def problem_responses(**meanings: str) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI of error answers, from names such as `_404` and what they mean."""
    content = {MEDIA_TYPE: {"schema": _SCHEMA}}
    return {
        name.removeprefix("_"): {"description": meaning, "content": content}
        for name, meaning in meanings.items()
    }
