"""Forms that MCP servers put to a person in the middle of a call: elicitation."""

from collections.abc import Awaitable
from contextvars import ContextVar
from dataclasses import dataclass

from mcp.client import ClientRequestContext
from mcp_types import (
    INVALID_REQUEST,
    CallToolResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
)

from beckon_contract.inputs import InputRequest, InvalidInput
from beckon_tools.errors import ToolError
from beckon_tools.person import InputRequired, Person


@dataclass(slots=True)
class _CallForms:
    """The forms of one call: the one without an answer, or the reason why a form cannot be shown."""

    person: Person
    pending: InputRequest | None = None
    problem: str = ""

    def raise_pending(self) -> None:
        """Raise `InputRequired` or `ToolError` if a form of the call was not answered."""
        if self.pending is not None:
            raise InputRequired(self.pending) from None
        if self.problem:
            raise ToolError(self.problem) from None


_current: ContextVar[_CallForms | None] = ContextVar("call_forms", default=None)


class ServerForms:
    """Answers the forms of a server with what persons have answered.

    At a form without an answer the call is ended by an error to the server, and made again with the answer.
    Before 2026-07-28 the request for a form does not name its call: with several calls of one connection it
    is refused.
    """

    def __init__(self) -> None:
        self._running: list[_CallForms] = []

    async def __call__(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult | ErrorData:
        """Answer a form of the server."""
        forms = _current.get() or (self._running[0] if len(self._running) == 1 else None)
        if forms is None:
            return ErrorData(code=INVALID_REQUEST, message="the form belongs to none of several calls")
        if not isinstance(params, ElicitRequestFormParams):
            forms.problem = "the MCP server requires a person to open a page, which is not supported"
            return ErrorData(code=INVALID_REQUEST, message=forms.problem)
        try:
            answer = forms.person.request_input(params.message, params.requested_schema)
        except InputRequired as needed:
            forms.pending = needed.request
            return ErrorData(code=INVALID_REQUEST, message="no person has filled in the form yet")
        except InvalidInput as error:
            forms.problem = f"the MCP server puts a form to a person that cannot be shown: {error}"
            return ErrorData(code=INVALID_REQUEST, message=forms.problem)
        content = None if answer.content is None else dict(answer.content)
        return ElicitResult(action=answer.action, content=content)

    async def answer_during(self, person: Person, call: Awaitable[CallToolResult]) -> CallToolResult:
        """Await a call of the connection, and answer its forms.

        Raises `InputRequired` for a form without an answer, and `ToolError` for one that cannot be shown,
        whatever the outcome of the call is.
        """
        forms = _CallForms(person)
        self._running.append(forms)
        token = _current.set(forms)
        try:
            result = await call
        except Exception:
            forms.raise_pending()
            raise
        finally:
            _current.reset(token)
            self._running.remove(forms)
        forms.raise_pending()
        return result
