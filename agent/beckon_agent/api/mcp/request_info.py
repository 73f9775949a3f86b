"""What is known of the request that is being served before the SDK reads it."""

from contextvars import ContextVar
from dataclasses import dataclass

from beckon_agent.agents.registry import AgentHandle


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """The agent whose tools are meant, and the session's id of clients before 2026-07-28."""

    hosted: AgentHandle
    session: str | None


current: ContextVar[RequestInfo] = ContextVar("mcp_asked")
