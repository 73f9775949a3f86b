"""The types of a response's items and events: OpenAI's, or those of Open Responses.

Open Responses has no item for a call that the server makes, and its types allow no unknown one. So a
response has OpenAI's types where the client knows them, and otherwise those of the specification alone. Calls
of the cluster's tools are then shown on request, as items with Beckon's own slug.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, cast

from beckon_agent.api.responses.output import ApprovalRequestItem, McpCallItem
from beckon_agent.core.records import StoredRun

ItemTypes = Literal["openai", "beckon", "specification"]
"""OpenAI's types; the specification's, with or without calls of the cluster's tools as Beckon's items."""

ITEM_TYPES: Final = "item_types"
"""The member of a run's `request` that holds its `ItemTypes`."""

OPENAI_CALL: Final = "mcp_call"
PROGRESS: Final = "beckon:mcp_call.progress"
"""An event type of our own: the progress of a tool's call.

A request gets it if its `include` has this name, which has the form that the specification requires of an
extension. It repeats the number of the event before it, because it is sent live only, and never again.
"""

OWN_CALL: Final = "beckon:tool_call"
_OWN_APPROVAL: Final = "beckon:approval_request"
_OPENAI_PACKAGE: Final = "x-stainless-lang"  # all of OpenAI's packages send it


def choose_types(include: Sequence[str], headers: Mapping[str, str]) -> ItemTypes:
    """Return the types for a request: by its `include`, else by the package that sent it."""
    if (types := _find_named(include)) is not None:
        return types
    return "openai" if _OPENAI_PACKAGE in headers else "specification"


def types_of(run: StoredRun, include: Sequence[str] = ()) -> ItemTypes:
    """Return the types of a stored response: by `include`, else as it was made."""
    return _find_named(include) or cast("ItemTypes", run.request.get(ITEM_TYPES, "openai"))


def _find_named(include: Sequence[str]) -> ItemTypes | None:
    if OPENAI_CALL in include or PROGRESS in include:
        return "openai"
    return "beckon" if OWN_CALL in include else None


def write_call(item: McpCallItem, types: ItemTypes) -> McpCallItem:
    """Return the item of a call with the type that the client gets."""
    return item if types == "openai" else {**item, "type": OWN_CALL}


def write_request(item: ApprovalRequestItem, types: ItemTypes) -> ApprovalRequestItem:
    """Return an approval request with the type that the client gets. It is shown in every case."""
    return item if types == "openai" else {**item, "type": _OWN_APPROVAL}


def write_error(code: str, message: str, types: ItemTypes) -> dict[str, Any]:
    """Return the members of an `error` event."""
    members = {"code": code, "message": message, "param": None}
    return members if types == "openai" else {"error": {"type": "server_error", **members}}


def event_type(kind: str, types: ItemTypes) -> str:
    """Return the name of an event: reasoning has another one at OpenAI."""
    return kind if types == "openai" else kind.replace("response.reasoning_text.", "response.reasoning.")
