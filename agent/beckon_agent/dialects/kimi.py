"""Kimi's calls, read wherever a server lets them through: K2's sections and K3's open and close tokens."""

import re
from collections.abc import Sequence
from typing import Final

from beckon_agent.dialects.calls import RawCall
from beckon_agent.dialects.jsontext import any_json
from beckon_agent.dialects.reader import up_to
from beckon_agent.dialects.source import Source, Steps
from beckon_agent.dialects.typed import Toolbox

_CALL_END: Final = "<|tool_call_end|>"
_ID: Final = re.compile(r"\s*(?:functions\.)?(?P<name>[\w.\-]+):\d+\s*")
_CLOSED: Final = "<|close|>call<|sep|>"
_SEP: Final = "<|sep|>"

SILENT: Final = frozenset({
    "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>",
    *(f"<|{side}|>{part}<|sep|>" for side in ("open", "close") for part in ("response", "tools")),
    "<|close|>message<|sep|>",
})  # fmt: skip


def numbered_call(source: Source, tools: Toolbox) -> Steps[Sequence[RawCall] | None]:
    """Read K2's `functions.NAME:0<|tool_call_argument_begin|>{…}`."""
    head, begin = yield from source.until("<|tool_call_argument_begin|>", _CALL_END)
    found = _ID.fullmatch(head)
    yield from source.space()
    if found is None or begin == _CALL_END or (yield from source.peek()) != "{":
        yield from source.until(_CALL_END)
        return ()
    arguments = yield from any_json(source, _CALL_END)
    yield from source.after_space(_CALL_END)
    return [RawCall(found["name"], arguments)]


def opened_call(source: Source, tools: Toolbox) -> Steps[Sequence[RawCall] | None]:
    """Read what follows K3's `<|open|>call tool="`."""
    name, _ = yield from source.until('"')
    yield from source.until(_SEP)
    arguments: dict[str, object] = {}
    while (yield from source.after_space('<|open|>argument key="')):
        key, _ = yield from source.until('"')
        attributes, _ = yield from source.until(_SEP)
        text, _ = yield from source.until("<|close|>argument<|sep|>")
        arguments[key] = text if 'type="string"' in attributes else tools.typed(name, key, text)
    if not (yield from source.after_space(_CLOSED, "<|close|>toolscall<|sep|>")):
        raise source.trouble()
    return [RawCall.of(name, arguments)]


FORMS: Final = {
    "<|tool_call_begin|>": numbered_call,
    '<|open|>call tool="': up_to(_CLOSED, opened_call),
    '<|open|>toolscall tool="': up_to(_CLOSED, opened_call),
}
