"""Facts about the current request, known before the SDK reads it."""

from contextvars import ContextVar
from dataclasses import dataclass

from beckon_agent.agents.registry import AgentHandle


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """The requested agent, and the session id.

    Only clients before 2026-07-28 have a session id.
    """

    hosted: AgentHandle
    session: str | None


current: ContextVar[RequestInfo] = ContextVar("mcp_request")
