"""Whatever JSON a stranger sends is taken or refused in the API's words, and never breaks anything."""

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from beckon_agent.api.http.errors import ApiError
from beckon_agent.api.responses.items import to_messages
from beckon_agent.api.responses.output import to_items
from beckon_agent.api.responses.request import CreateRequest
from beckon_agent.core import json_values
from beckon_agent.model.messages import pair_calls

TYPES = st.sampled_from(
    [
        "message",
        "function_call",
        "function_call_output",
        "mcp_call",
        "mcp_approval_request",
        "mcp_approval_response",
        "reasoning",
        "item_reference",
        "input_text",
        "output_text",
        "input_image",
        "input_audio",
        "input_file",
        "function",
        "allowed_tools",
        "json_schema",
    ]
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=6)
    | TYPES
    | st.sampled_from(["user", "assistant", "developer", "auto", "required", "\ud800", "https://x.test"])
)
KEYS = st.sampled_from(
    [
        "type",
        "role",
        "content",
        "text",
        "call_id",
        "id",
        "name",
        "arguments",
        "output",
        "image_url",
        "file_data",
        "input_audio",
        "data",
        "format",
        "summary",
        "tools",
        "mode",
        "server_label",
        "schema",
        "parameters",
        "error",
        "effort",
    ]
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=12,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=6)
PARTS = st.fixed_dictionaries(
    {"type": TYPES, "text": st.text(max_size=5)}, optional={"image_url": LEAVES, "file_data": LEAVES}
)
ITEMS = OBJECTS | st.fixed_dictionaries(
    {
        "type": TYPES,
        "role": st.sampled_from(["user", "assistant", "system", "developer"]),
        "content": st.lists(PARTS, max_size=3) | st.text(max_size=5),
        "call_id": st.sampled_from(["a", "b"]),
        "id": st.sampled_from(["a", "b"]),
        "name": st.sampled_from(["f", "g"]),
        "arguments": st.sampled_from(["{}", "{", ""]),
        "output": st.lists(PARTS, max_size=2) | st.text(max_size=5),
    }
)
MEMBERS = [name for name in CreateRequest.model_fields if name != "input"]
BODIES = st.builds(
    lambda given_input, rest: {"input": given_input, **rest},
    st.text(max_size=5) | st.lists(ITEMS, max_size=5),
    st.dictionaries(st.sampled_from(MEMBERS), VALUES | OBJECTS | st.lists(OBJECTS, max_size=2), max_size=4),
)


@given(BODIES, st.booleans())
def test_any_body_is_read_or_refused(body: dict[str, Any], alone: bool) -> None:
    try:
        request = CreateRequest.model_validate(body)
        request.check_support()
        request.to_options()
        echo = request.to_echo()
        messages = to_messages(request.input, alone=alone)
    except (ValidationError, ApiError):
        return

    json_values.to_json(echo).encode()
    orjson.dumps(messages)
    pair_calls(messages)


@given(st.lists(ITEMS, max_size=6))
def test_messages_that_were_made_of_items_are_items_again(items: list[dict[str, Any]]) -> None:
    try:
        messages = to_messages(CreateRequest.model_validate({"input": items}).input, alone=False)
    except (ValidationError, ApiError):
        return

    listed = to_items(messages, "owner")

    assert len({item["id"] for item in listed}) == len(listed)
    again = to_messages([dict(item) for item in listed if item["type"] != "mcp_call"], alone=False)
    shown = [message["content"] for message in messages if message["role"] == "user"]
    assert [message["content"] for message in again if message["role"] == "user"] == shown
