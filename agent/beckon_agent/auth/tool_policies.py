"""The policies of an Agent for its tools: of several for one tool, the strictest counts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from beckon_contract.resources.agent_terms import Rate, ToolPolicy
from beckon_contract.resources.tools import TextCallRule, Tool

_STRICTNESS: Sequence[TextCallRule] = ("Allow", "Approve", "Refuse")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits on calls of a tool.

    `concurrency` is the number of simultaneous calls, `None` without limit. Each of the rates applies.
    """

    concurrency: int | None = None
    rates: tuple[Rate, ...] = ()


def is_withheld(tool: Tool, policies: Iterable[ToolPolicy]) -> bool:
    """Return True if the policies withhold a tool.

    It may write although only reading is allowed, or its calls bypass the Broker although that is
    required.
    """
    return any(
        (policy.read_only and not tool.read_only) or (policy.through_broker and tool.dispatch == "direct")
        for policy in _choose_policies(tool, policies)
    )


def apply_policies(tool: Tool, policies: Sequence[ToolPolicy], *, usual_timeout: float) -> Tool:
    """Return a tool with the policies applied.

    They only add to the requirements of its EventType. `usual_timeout` is the agent's time-out in
    seconds, for a tool without one.
    """
    chosen = _choose_policies(tool, policies)
    if not chosen:
        return tool
    approval = tool.requires_approval or any(_needs_approval(policy, tool) for policy in chosen)
    text_calls = max((policy.text_calls for policy in chosen), key=_STRICTNESS.index)
    caps = [policy.timeout for policy in chosen if policy.timeout is not None]
    timeout = min(tool.timeout or usual_timeout, *caps) if caps else tool.timeout
    return replace(tool, requires_approval=approval, timeout=timeout, text_calls=text_calls)


def bounds_of(tool: Tool, policies: Iterable[ToolPolicy]) -> Bounds:
    """Return the limits on calls of a tool."""
    chosen = _choose_policies(tool, policies)
    places = [policy.concurrency for policy in chosen if policy.concurrency is not None]
    rates = {policy.rate for policy in chosen if policy.rate is not None}
    return Bounds(min(places, default=None), tuple(sorted(rates, key=lambda rate: rate.seconds)))


def _choose_policies(tool: Tool, policies: Iterable[ToolPolicy]) -> list[ToolPolicy]:
    return [policy for policy in policies if policy.tools.selects(tool)]


def _needs_approval(policy: ToolPolicy, tool: Tool) -> bool:
    return policy.approval == "Always" or (policy.approval == "Writes" and not tool.read_only)
