"""How a tool says that it has taken a call and answers later: an attribute of its first reply.

The last reply of the call is an ordinary one, sent to the Broker whenever it is there. It bears the same
correlation as the first, and names the call in `CAUSE` (CloudEvents correlation extension).
"""

from collections.abc import Mapping

STATE = "beckonstate"
ACCEPTED = "accepted"
"""The value of `STATE` by which a reply is no answer yet."""

CAUSE = "causationid"
"""On a reply: the id of the call."""


def is_acceptance(extensions: Mapping[str, object]) -> bool:
    """Whether the reply with these extension attributes says that the answer comes later."""
    return extensions.get(STATE) == ACCEPTED
