"""Signals from a tool before its answer: acceptance and progress.

An accepted call is answered later. Acceptance is an attribute of the call's first reply.

The last reply of the call is an ordinary one, sent to the Broker when it is ready. It bears the same
correlation as the first, and names the call in `CAUSE` (CloudEvents correlation extension).
"""

from collections.abc import Mapping

STATE = "beckonstate"
ACCEPTED = "accepted"
"""The value of `STATE` by which a reply is no answer yet."""

PROGRESS = "progress"
"""The value of `STATE` on an event that tells how far a call has come. It bears no reply attribute."""

PROGRESS_MARK = "beckonprogress"
"""On a report of progress: the token of the call, by which the report finds who waits for the answer.

Not the reply attribute, for then a report would be taken for the answer; nor that of the call, for then
a report that cannot be delivered would be taken for the call.
"""

CAUSE = "causationid"
"""On a reply, and on a report of progress: the id of the call."""


def is_report(extensions: Mapping[str, object]) -> bool:
    """Return True if these extension attributes mark a progress report."""
    return extensions.get(STATE) == PROGRESS


def is_acceptance(extensions: Mapping[str, object]) -> bool:
    """Return True if these extension attributes mark a reply as acceptance.

    The answer comes later.
    """
    return extensions.get(STATE) == ACCEPTED
