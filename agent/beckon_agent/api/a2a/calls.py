"""One request of A2A, from the ASGI scope to the operations behind the SDK."""

from collections.abc import MutableMapping
from dataclasses import dataclass

from beckon_agent.agents.registry import AgentHandle

CALL = "beckon_call"
"""The key of a request's call in its scope, and in the SDK's context."""


@dataclass(slots=True)
class A2aCall:
    """One request: its agent, its caller, and the HTTP answer of a refusal.

    `status` is that of the answer if it is not the SDK's; `retry_after` is in seconds. `wanted_status` is the
    filter of a list as it was sent: the SDK drops one that it does not know.
    """

    hosted: AgentHandle
    owner: str
    base_url: str
    status: int | None = None
    retry_after: int | None = None
    wanted_status: str = ""


def find_call(scope: MutableMapping[str, object]) -> A2aCall:
    """Return the call in the scope of a request, or in its context."""
    call = scope[CALL]
    if not isinstance(call, A2aCall):
        raise TypeError(f"no call of A2A: {call!r}")
    return call
