"""Requests that chat windows make beside the conversation: its title, its tags, what might be asked next.

Open WebUI sends them to the model of the chat, with nothing to tell them apart but the text, in which the
conversation is quoted. What was asked in it has been answered: a tool called for it again would have its
effect twice.
"""

import re
from collections.abc import Sequence

from beckon_agent.core.model_types import Message

# Of all its prompts that quote the conversation: the heading, and then the quotation.
_QUOTES = re.compile(r"\s*### Task:\s.*<chat_history>", re.DOTALL)


def is_side_request(messages: Sequence[Message]) -> bool:
    """Whether this is a task about a conversation, and no conversation itself."""
    said = [message for message in messages if message.get("role") not in ("system", "developer")]
    if len(said) != 1 or said[0].get("role") != "user":
        return False
    content = said[0].get("content")
    return isinstance(content, str) and _QUOTES.match(content) is not None
