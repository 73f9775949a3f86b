"""Text of strangers on a terminal: a model or a tool must not command it."""

from io import StringIO

import pytest
from rich.table import Table
from rich.text import Text

from beckon_cli.output import SafeConsole
from beckon_runtime.terminal import printable

TITLE = "\x1b]0;owned\x07"
CLIPBOARD = "\x1b]52;c;ZXZpbA==\x1b\\"
CLEAR = "\x9b2J"
OVERRIDE, ISOLATE = "\N{RIGHT-TO-LEFT OVERRIDE}", "\N{RIGHT-TO-LEFT ISOLATE}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Zwölf, 十二 and 🎲\tend\n", "Zwölf, 十二 and 🎲\tend\n"),
        (TITLE, "␛]0;owned␇"),
        (CLIPBOARD, "␛]52;c;ZXZpbA==␛\\"),
        (CLEAR, "\ufffd2J"),
        ("safe\rowned\x7f", "safeowned␡"),
        ("a\r\nb\x00", "a\nb␀"),
        (f"{OVERRIDE}gpj.exe{ISOLATE} \u05d0", "\ufffdgpj.exe\ufffd \u05d0"),
    ],
)
def test_control_characters_are_visible(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_a_terminal_gets_colours_of_ours_and_no_control_of_others() -> None:
    written = StringIO()
    console = SafeConsole(file=written, force_terminal=True, color_system="standard", width=200)
    table = Table(box=None, show_header=False)
    table.add_row(Text(CLIPBOARD))
    console.print(Text(f"← tool: {TITLE}", style="red"))
    console.print(table)

    assert "\x1b[31m← tool: ␛]0;owned" in written.getvalue()
    assert "\x1b]" not in written.getvalue()


def test_a_file_gets_the_text_as_it_is() -> None:
    written = StringIO()
    SafeConsole(file=written, force_terminal=False, width=200).print(Text("\x1b[1mbold"))

    assert written.getvalue() == "\x1b[1mbold\n"


def test_brackets_in_a_text_are_text() -> None:
    written = StringIO()
    console = SafeConsole(file=written, force_terminal=True, highlight=False, width=200)
    console.print("manifests/[red]/[/x]", style="dim")
    with console.status("waiting for [/x] …") as waiting:
        waiting.update(Text("[/y]"))

    assert "manifests/[red]/[/x]" in written.getvalue()
    assert "[/y]" in written.getvalue()
