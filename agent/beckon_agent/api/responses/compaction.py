"""Compaction: a conversation becomes one item, with the model's summary."""

import base64
import secrets
import time
from collections.abc import Sequence
from contextlib import aclosing
from typing import Annotated, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.api.http.errors import ApiError
from beckon_agent.api.responses.documents import ResponseUsage, usage_document
from beckon_agent.api.responses.items import InputItem
from beckon_agent.api.responses.request import Cleaned
from beckon_agent.core.model_types import Message, Usage
from beckon_agent.core.run_events import RunFinished, TextDelta
from beckon_agent.core.run_types import Options
from beckon_agent.service import Service

_REQUEST: Final = (
    "Summarise our conversation, so that it can go on without its messages: keep names, numbers, decisions, "
    "results of tools and open questions. Answer with the summary alone."
)
_MAX_ITEMS = 10_000


class CompactRequest(Cleaned):
    """The body of `POST /v1/responses/compact`."""

    model: str = Field(description="The name of an agent, as in GET /v1/models.")
    input: str | Annotated[list[InputItem], Field(max_length=_MAX_ITEMS)] | None = None
    previous_response_id: str | None = None
    instructions: str | None = Field(None, description="What the summary is to keep.")
    prompt_cache_key: str | None = Field(None, max_length=512, description="Taken, and not used.")


class CompactionItem(TypedDict):
    """The item in place of a conversation."""

    id: str
    type: Literal["compaction"]
    encrypted_content: str


class CompactedResponse(TypedDict):
    """A compacted conversation."""

    id: str
    object: Literal["response.compaction"]
    created_at: int
    output: list[CompactionItem]
    usage: ResponseUsage | None


async def compact_messages(
    service: Service, hosted: AgentHandle, messages: Sequence[Message], instructions: str | None
) -> CompactedResponse:
    """Return a conversation as one item. The agent's model summarises it in a run without tools.

    Raises the errors of a run, and `ApiError` for a model without an answer.
    """
    run_id = f"resp_{secrets.token_hex(16)}"
    request: Message = {"role": "user", "content": _REQUEST}
    options = Options(use_tools=False, instructions=instructions or "")
    await service.admit_request(hosted, run_id)
    text, usage, ending = "", None, ""
    run = service.run_agent(hosted, [*messages, request], options, admitted=run_id)
    async with aclosing(run) as events:
        async for event in events:
            if type(event) is TextDelta:
                text += event.text
            elif isinstance(event, RunFinished):
                usage, ending = event.usage, event.ending
    if not text.strip() or ending != "stop":
        message = f"the model gave no whole summary (it ended with {ending!r}); compact fewer items at once"
        raise ApiError(502, message, code="model_error")
    return _to_document(run_id, text, usage)


def _to_document(run_id: str, summary: str, usage: Usage | None) -> CompactedResponse:
    return {
        "id": run_id,
        "object": "response.compaction",
        "created_at": int(time.time()),
        "output": [
            {
                "id": f"cmp_{secrets.token_hex(16)}",
                "type": "compaction",
                # Encoded, not encrypted: the client has the whole conversation.
                "encrypted_content": base64.b64encode(summary.encode()).decode(),
            }
        ],
        "usage": usage_document(usage),
    }
