"""Calls as `<function=NAME>` with `<parameter=NAME>` elements, typed by the tool's schema."""

import re
from collections.abc import Sequence
from typing import Final

from beckon_agent.dialects.calls import RawCall
from beckon_agent.dialects.jsontext import any_json
from beckon_agent.dialects.source import Incomplete, Source, Steps
from beckon_agent.dialects.typed import Toolbox

_NAME: Final = re.compile(r"[^<>\s]*")
_LONGEST_NAME: Final = 256
_BEGIN: Final = "<parameter="
_END: Final = "</function>"


def function_element(source: Source, tools: Toolbox) -> Steps[Sequence[RawCall] | None]:
    """Read what follows `<function=`, and `</tool_call>` after it, which models forget at either end.

    Without a name, and a parameter or an end after it, this is no call.
    """
    name = yield from source.run(_NAME, _LONGEST_NAME)
    if not name or not (yield from source.take(">")):
        return None
    following = yield from source.after_space("{", _BEGIN, _END)
    if not following:
        return None
    if following == "{":  # Llama 3.1's own form
        call = RawCall(name, (yield from any_json(source, _END, before="{")))
        yield from source.after_space(_END)
        return [call]
    arguments: dict[str, object] = {}
    while following == _BEGIN:
        key, text, following = yield from _parameter(source)
        arguments[key] = tools.typed(name, key, text)
        if following not in (_BEGIN, _END):
            following = yield from source.after_space(_BEGIN, _END)
    if not following:
        raise source.trouble()
    yield from source.after_space("</tool_call>")
    return [RawCall.of(name, arguments)]


def _parameter(source: Source) -> Steps[tuple[str, str, str]]:
    """Take a name, a value and what ends it: its own tag, the next parameter, or the function's end."""
    key, _ = yield from source.until(">")
    text, stop = yield from source.until("</parameter>", f"\n{_BEGIN}", f"\n{_END}")
    if not stop:
        raise Incomplete
    return key.strip(), _trimmed(text), stop.strip()


def _trimmed(text: str) -> str:
    """Take off the line breaks that the markup puts around a value, not those of the value."""
    return text.removeprefix("\n").removesuffix("\n") if text.strip() else ""
