"""What a call came to, in one of a few words: for labels and for `error.type`."""

from beckon_agent.runs import CallFinished
from beckon_contract.failures import Reason

ANSWERED = "answered"

_REASONS = frozenset(reason.value for reason in Reason)


def outcome(call: CallFinished) -> str:
    """Return `answered` or the reason of the failure; one that a tool made up is `tool_failed`."""
    if not call.failed:
        return ANSWERED
    reason = reason_in(call.result)
    return reason if reason in _REASONS else Reason.TOOL_FAILED.value


def reason_in(result: object) -> str:
    """Return the reason that a failure tells, the empty string where there is none."""
    error = result.get("error") if isinstance(result, dict) else None
    reason = error.get("reason") if isinstance(error, dict) else None
    return reason if isinstance(reason, str) else ""
