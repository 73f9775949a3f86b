"""The check of Host and Origin in front of a handler."""

from beckon_contract.origins import OriginPolicy
from beckon_shim.messages import Answer, Handler, HangUp, Request, Respond, of_problem


class CheckedOrigins:
    """A handler that never sees a request of a web page, nor one for another host."""

    def __init__(self, handler: Handler, policy: OriginPolicy) -> None:
        self._handler = handler
        self._policy = policy

    def handle(self, request: Request, respond: Respond) -> HangUp | None:
        """Refuse, or hand on."""
        problem = self._policy.refuse(request.headers)
        if problem is None:
            return self._handler.handle(request, respond)
        respond(of_problem(problem, "rejected"))
        return None

    def too_large(self, request: Request, limit: int) -> Answer:
        """Return the answer to a request whose body is over the limit; nothing of it is secret."""
        return self._handler.too_large(request, limit)
