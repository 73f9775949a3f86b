"""The report of a failed tool call to the model.

It is data the model can act on.
"""

from enum import StrEnum


class Reason(StrEnum):
    """The reason for a call without a result.

    This is the closed set that a model may see.

    `outcome_unknown` says that the tool may have run and that its answer did not arrive in time:
    another call may have the effect a second time.
    """

    TIMEOUT = "timeout"
    UNDELIVERABLE = "undeliverable"
    INVALID_ARGUMENTS = "invalid_arguments"
    TOOL_FAILED = "tool_failed"
    DENIED = "denied"
    UNKNOWN_TOOL = "unknown_tool"
    OUTCOME_UNKNOWN = "outcome_unknown"


def failure(reason: Reason, message: str, **details: object) -> dict[str, object]:
    """Return the error object of a failed call: `{"error": {"reason", "message", …}}`."""
    return {"error": {"reason": reason.value, "message": message, **details}}
