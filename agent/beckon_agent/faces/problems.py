"""Errors of the routes that are Beckon's own: problem details (RFC 9457)."""

from starlette.responses import Response

from beckon_contract.problem import MEDIA_TYPE, Problem


class ProblemError(Exception):
    """An answer that is a problem document."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


def problem_response(problem: Problem) -> Response:
    """Return the whole HTTP answer."""
    return Response(problem.body(), problem.status, media_type=MEDIA_TYPE)
