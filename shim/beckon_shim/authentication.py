"""Authentication of callers: every call carries a credential made with a key of the shim."""

import logging
import time

from beckon_contract.call_credentials import SCHEME, BadCredential, check_request
from beckon_contract.problem import Problem
from beckon_shim.lines import ids_in
from beckon_shim.messages import Answer, Handler, HangUp, Request, Respond, of_problem
from beckon_shim.metrics import Metrics
from beckon_shim.tokens import Tokens

_OUTCOME = "unauthenticated"

logger = logging.getLogger(__name__)


class Authenticated:
    """A handler of calls that only callers with a credential reach.

    Health and metrics, which are not POSTed, stay open to probes.
    """

    def __init__(self, handler: Handler, tokens: Tokens, metrics: Metrics) -> None:
        self._handler = handler
        self._tokens = tokens
        self._metrics = metrics

    def handle(self, request: Request, respond: Respond) -> HangUp | None:
        """Pass a request on, or answer it with 401."""
        if request.method == "POST":
            try:
                check_request(self._tokens.keyring, request.path, request.headers, request.body, time.time())
            except BadCredential as error:
                self._metrics.call(_OUTCOME)
                logger.info("a call: %s: %s", _OUTCOME, error, extra=ids_in(request.headers))
                respond(_refusal(error))
                return None
        return self._handler.handle(request, respond)

    def too_large(self, request: Request, limit: int) -> Answer:
        """Return the answer to a request whose body is over the limit."""
        return self._handler.too_large(request, limit)


def _refusal(error: BadCredential) -> Answer:
    """Return 401: the event was not sent."""
    problem = Problem(401, _OUTCOME, "No valid credential", str(error), {"delivered": False})
    return of_problem(problem, _OUTCOME, (b"www-authenticate", SCHEME.encode()))
