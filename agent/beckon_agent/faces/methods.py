"""Which methods a path answers: the header `allow` of a 405 (RFC 9110, section 10.2.1)."""

from collections.abc import Iterable

from starlette.routing import BaseRoute, Match
from starlette.types import Scope

_METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")


def allowed(routes: Iterable[BaseRoute], scope: Scope) -> str:
    """Return the methods of a request's path, over all its routes: each route knows its own only."""
    known = list(routes)
    return ", ".join(method for method in _METHODS if _is_served(known, {**scope, "method": method}))


def _is_served(routes: Iterable[BaseRoute], scope: Scope) -> bool:
    return any(route.matches(scope)[0] is Match.FULL for route in routes)
