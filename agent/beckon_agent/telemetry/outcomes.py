"""What a call came to, in one of a few words: for labels and for `error.type`."""

from beckon_agent.runs import CallFinished
from beckon_contract.failures import Reason

ANSWERED = "answered"

_REASONS = frozenset(reason.value for reason in Reason)


def outcome(call: CallFinished) -> str:
    """Return `answered` or the reason of the failure; one that a tool made up is `tool_failed`."""
    if not call.failed:
        return ANSWERED
    error = call.result.get("error") if isinstance(call.result, dict) else None
    reason = error.get("reason") if isinstance(error, dict) else None
    return reason if isinstance(reason, str) and reason in _REASONS else Reason.TOOL_FAILED.value
