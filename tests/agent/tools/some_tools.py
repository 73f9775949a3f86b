"""Tools and conversations for the tests of their choice."""

from collections.abc import Mapping
from typing import Any

import orjson

from beckon_agent.core.model_types import Message
from beckon_agent.tools.query import FIND_TOOLS
from beckon_contract.resources.tools import Tool


def a_tool(
    name: str,
    description: str = "",
    *,
    parameters: Mapping[str, Any] | None = None,
    event_type: str = "",
    labels: Mapping[str, str] | None = None,
) -> Tool:
    return Tool(
        name=name,
        namespace="default",
        event_type=name,
        type=event_type or f"test.{name}.called",
        source=None,
        description=description,
        parameters={"type": "object", "properties": dict(parameters or {})},
        parameters_from="spec.schemaData",
        labels=labels or {},
    )


def catalogue(*tools: Tool) -> dict[str, Tool]:
    return {tool.name: tool for tool in sorted(tools, key=lambda tool: tool.name)}


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def called(name: str, result: object = "done") -> list[Message]:
    """Return a call of the model and its result as they stand in a conversation."""
    call = {"id": "call12345", "type": "function", "function": {"name": name, "arguments": "{}"}}
    content = result if isinstance(result, str) else orjson.dumps(result).decode()
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call12345", "name": name, "content": content},
    ]


def requested_tools(answer: Mapping[str, object]) -> list[Message]:
    """Return a call of `find_tools` with this answer."""
    return called(FIND_TOOLS.name, answer)


SHOP = catalogue(
    a_tool("cancel_order", "Cancel a pending order."),
    a_tool("convert_currency", "Convert an amount of money between currencies."),
    a_tool("get_weather", "The weather forecast for a city."),
    a_tool("play_music", "Play a song or an album."),
    a_tool("refund_payment", "Pay money back to a customer."),
    a_tool("resize_image", "Scale a picture to another size."),
    a_tool("send_mail", "Send an e-mail to somebody."),
    a_tool("track_parcel", "Where a parcel is at the moment."),
    a_tool("translate_text", "Translate a text into another language."),
    a_tool("water_plants", "Water the plants in the greenhouse."),
)
