"""DeepSeek's calls: DSML elements (V3.2, V4) and the older `<｜tool▁call▁begin｜>` (R1, V3, V3.1)."""

import re
from collections.abc import Sequence
from typing import Final

from beckon_agent.core.model_types import Declaration
from beckon_agent.dialects.base import RawCall, ToolSchemas
from beckon_agent.dialects.json_text import any_json, to_json
from beckon_agent.dialects.reader import Form, Grammar, until_closer
from beckon_agent.dialects.rendering import TextDialect, WriteCall, describe_tool, join_lines
from beckon_agent.dialects.text_parser import Incomplete, Steps, TextSource

DSML: Final = "｜DSML｜"
_OPENING: Final = f"<{DSML}function_calls>\n"
_CLOSING: Final = f"\n</{DSML}function_calls>"
_NAME: Final = re.compile(r"[^\"<>\s]*")
_LONGEST_NAME: Final = 256
_SEPARATOR: Final = "<｜tool▁sep｜>"
_CALL_END: Final = "<｜tool▁call▁end｜>"

SILENT: Final = frozenset({"<｜end▁of▁sentence｜>"})
FRAMING: Final = frozenset({
    "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>",
    *(f"<{slash}{DSML}{section}>" for slash in ("", "/") for section in ("function_calls", "tool_calls")),
})  # fmt: skip


def invoke_element(prefix: str = "") -> Form:
    """Return the form for parameter elements after `<PREFIXinvoke name="`."""
    parameter, end = f'<{prefix}parameter name="', f"</{prefix}invoke>"
    value_end = f"</{prefix}parameter>"

    def read_invocation(source: TextSource, tools: ToolSchemas) -> Steps[Sequence[RawCall] | None]:
        name = yield from source.take_match(_NAME, _LONGEST_NAME)
        if not (yield from source.take_literal('">')):
            return None
        arguments: dict[str, object] = {}
        while (yield from source.after_space(parameter)):
            key, _ = yield from source.take_until('"')
            attributes, _ = yield from source.take_until(">")
            text, closed = yield from source.take_until(value_end)
            if not closed:
                raise Incomplete
            is_text = 'string="true"' in attributes
            arguments[key] = text if is_text else tools.to_typed_value(name, key, _trim_markup(text))
        if not (yield from source.after_space(end)):
            raise source.error_here()
        return [RawCall.from_parsed(name, arguments)]

    return until_closer(end, read_invocation)


def _trim_markup(text: str) -> str:
    return text.removeprefix("\n").removesuffix("\n")


def special_tokens(source: TextSource, tools: ToolSchemas) -> Steps[Sequence[RawCall] | None]:
    """Read a call after `<｜tool▁call▁begin｜>`. It is `function`, name and fenced JSON; or name and JSON."""
    name, separator = yield from source.take_until(_SEPARATOR, _CALL_END)
    if separator != _SEPARATOR:
        return ()
    if (yield from source.beyond_space()) != "{":
        name, _ = yield from source.take_until("\n")
        yield from source.after_space("```json")
    yield from source.skip_blanks()
    if (yield from source.peek()) != "{":
        yield from source.take_until(_CALL_END)
        return ()
    arguments = yield from any_json(source, _CALL_END)
    yield from source.after_space("```")
    yield from source.after_space(_CALL_END)
    return [RawCall(name.strip(), arguments)]


def _write_instructions(tools: Sequence[Declaration]) -> str:
    return join_lines(
        "## Tools",
        "You can call the functions below. To call some, write a block of this form:",
        f"{_OPENING}{_write_call(WriteCall('FUNCTION', {'PARAMETER': 'VALUE'}))}{_CLOSING}",
        'string="true" marks a value that is text; any other value is JSON with string="false".',
        "The results follow in <function_results>.",
        "",
        *(to_json(describe_tool(tool)) for tool in tools),
    )


def _write_call(call: WriteCall) -> str:
    parameters = "".join(_write_parameter(name, argument) for name, argument in call.arguments.items())
    return f'<{DSML}invoke name="{call.name}">\n{parameters}</{DSML}invoke>'


def _write_parameter(name: str, argument: object) -> str:
    is_text = isinstance(argument, str)
    text = argument if is_text else to_json(argument)
    return f'<{DSML}parameter name="{name}" string="{to_json(is_text)}">{text}</{DSML}parameter>\n'


def _write_result(name: str, content: str) -> str:
    return f"<function_results>\n<result>{content}</result>\n</function_results>"


FORMS: Final = {f'<{DSML}invoke name="': invoke_element(DSML), "<｜tool▁call▁begin｜>": special_tokens}

DEEPSEEK: Final = TextDialect(
    name="deepseek",
    grammar=Grammar(FORMS, silent=SILENT, framing=FRAMING),
    instructions=_write_instructions,
    call=_write_call,
    result=_write_result,
    opening=_OPENING,
    closing=_CLOSING,
    stop=("<function_results>",),
)
