"""Forms that tools put to a person: their ids at every face, and the answers to them."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from beckon_agent.core.records import StoredCall
from beckon_contract.inputs import InputRequest

_INPUT = "inreq_"


def input_id(event_id: str) -> str:
    """Return the id of an input request for its call's event id."""
    return f"{_INPUT}{event_id}"


def event_of_input(request: str) -> str | None:
    """Return the call's event id for the id of an input request; `None` for any other id."""
    return request.removeprefix(_INPUT) if request.startswith(_INPUT) else None


class FormAnswer(BaseModel):
    """A person's answer to a form."""

    model_config = ConfigDict(extra="forbid", strict=True)

    action: Literal["accept", "decline", "cancel"] = Field(
        description="`accept` with the content; `decline` to refuse; `cancel` to close the form."
    )
    content: dict[str, Any] | None = Field(None, description="The fields of an accepted form, by its schema.")

    def fill_form(self, call: StoredCall) -> InputRequest:
        """Return what a call requests with this answer; raise `InvalidInput` if it does not fit the form."""
        document = {"action": self.action, "content": self.content}
        return InputRequest.from_stored(call.input_request).fill_form(document)

    def repeats(self, call: StoredCall) -> bool:
        """Return True if a form of a call has this very answer already. A later form may be open."""
        stored = call.input_answer or {}
        parts = stored.get("answers") or (call.input_request or {}).get("answers") or {"": stored}
        return any(
            (self.action, self.content) == (one.get("action"), one.get("content")) for one in parts.values()
        )
