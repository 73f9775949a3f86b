"""What schemathesis cannot know: random words name no agent, no earlier response and no conversation.

It loads this module by `schemathesis.toml`; half of the requests are left as it made them.
"""

from typing import Any

import schemathesis

_NAMES = ("model", "previous_response_id", "conversation")


def map_body(context: schemathesis.HookContext, body: Any) -> Any:
    """Let requests for an answer mean the agent that there is."""
    path = context.operation.path if context.operation else ""
    if not isinstance(body, dict) or len(body) % 2 or path not in ("/v1/responses", "/v1/chat/completions"):
        return body
    if path == "/v1/chat/completions":
        return {**body, "model": "beckon"}
    return {name: value for name, value in body.items() if name not in _NAMES}


schemathesis.hook(map_body)
