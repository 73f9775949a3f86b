"""What pages, files and mails make of a text, for a reader who sees the text all the same."""

import base64
import html
import json
import quopri
import re
from collections.abc import Callable
from urllib.parse import quote


def _spread(text: str) -> str:
    return "\u200b".join(text)


def _wide(text: str) -> str:
    return "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in text)


def _alike(text: str) -> str:
    return text.translate(str.maketrans("eacopx", "еасорх"))


def _escaped(text: str) -> str:
    return "".join(f"\\u{ord(letter):04x}" for letter in text)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _numbered(text: str, prefix: str) -> str:
    """A line for each part of the text, with what a file viewer writes before it."""
    lines = re.sub(r"([{,])", r"\1\n  ", text).split("\n")
    return "\n".join(prefix.format(number) + line for number, line in enumerate(lines, start=1))


def _highlighted(text: str) -> str:
    """The HTML of a code viewer: a span for each word."""
    parts = re.split(r"(\w+)", text)
    return "".join(
        f'<span class="hljs-attr">{html.escape(part)}</span>' if part.isalnum() else html.escape(part)
        for part in parts
    )


def _mapped(text: str, first: int) -> str:
    return "".join(chr(first + ord(letter) - 97) if "a" <= letter <= "z" else letter for letter in text)


ENCODINGS: dict[str, Callable[[str], str]] = {
    "json": lambda text: json.dumps({"page": text}),
    "json_in_json": lambda text: json.dumps({"page": json.dumps({"body": f"Hi. {text}"})}),
    "json_in_json_in_json": lambda text: json.dumps([json.dumps({"a": json.dumps({"b": text})})]),
    "ascii_json": lambda text: json.dumps({"page": f"é {text}"}, ensure_ascii=True),
    "entities": html.escape,
    "numeric_entities": lambda text: "".join(f"&#{ord(letter)};" for letter in text),
    "entities_twice": lambda text: html.escape(html.escape(text)),
    "percent": lambda text: quote(text, safe=""),
    "percent_twice": lambda text: quote(quote(text, safe=""), safe=""),
    "unicode_escapes": _escaped,
    "base64": lambda text: f"Decode this: {_base64(text)} please.",
    "base64_lines": lambda text: "\n".join(
        _base64(text)[at : at + 40] for at in range(0, len(_base64(text)), 40)
    ),
    "base64_twice": lambda text: _base64(_base64(text)),
    "base64_in_json": lambda text: json.dumps({"data": _base64(text)}),
    "hexadecimal": lambda text: text.encode().hex(),
    "zero_width": _spread,
    "full_width": _wide,
    "letters_that_look_alike": _alike,
    "upper_case": str.upper,
    "blanks": lambda text: text.replace('"', '" ').replace("\n", "\n\n   "),
    "backslashes": lambda text: text.replace("_", "\\_").replace('"', '\\"'),
    "bold": lambda text: text.replace("effect", "**effect**"),
    "no_quotes": lambda text: text.replace('"', "").replace("'", ""),
    "quoted_printable": lambda text: quopri.encodestring(text.encode()).decode(),
    "soft_line_breaks": lambda text: "=\n".join(
        text.replace("=", "=3D")[at : at + 9] for at in range(0, len(text) + 8, 9)
    ),
    "line_numbers": lambda text: _numbered(text, "{:4}  "),
    "line_numbers_with_colons": lambda text: _numbered(text, "{}: "),
    "lines_found_in_a_file": lambda text: _numbered(text, "src/a.py:{}:"),
    "times_before_lines": lambda text: _numbered(text, "2026-11-24T10:00:{:02}Z "),
    "quoted_mail": lambda text: _numbered(text, "> > "),
    "added_lines": lambda text: "\n".join(f"+{line}" for line in text.split("\n")),
    "highlighted_code": _highlighted,
    "highlighted_code_in_json": lambda text: json.dumps({"html": _highlighted(text)}),
    "break_in_a_word": lambda text: html.escape(text).replace("ff", "f<wbr>f").replace("ag", "a<b></b>g"),
    "comment_in_a_word": lambda text: html.escape(text).replace("effect", "ef<!-- nothing -->fect"),
    "bold_html": lambda text: html.escape(text).replace("effect", "<b>effect</b>").replace("X", "<i>X</i>"),
    "small_capitals": lambda text: text.translate(
        str.maketrans("abcdefghijklmnoprstuvwyz", "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ")
    ),
    "framed_letters": lambda text: _mapped(text, 0x1F170),
    "bold_letters": lambda text: _mapped(text, 0x1D41A),
    "circled_letters": lambda text: _mapped(text, 0x24D0),
    "enclosing_marks": "\u20dd".join,
    "zero_bytes": "\x00".join,
    "backspaces": "\x08".join,
    "braille_blanks": "\u2800".join,
    "language_tags": "\U000e0001".join,
    "musical_controls": "\U0001d173".join,
    "blanks_between_letters": " ".join,
    "dashes_between_letters": "-".join,
    "octal_escapes": lambda text: "".join(
        f"\\{ord(letter):03o}" if letter.isascii() else letter for letter in text
    ),
    "css_escapes": lambda text: "".join(f"\\{ord(letter):x} " for letter in text),
    "bytes_of_c": lambda text: ", ".join(f"0x{byte:02x}" for byte in text.encode()),
    "bytes_with_colons": lambda text: ":".join(f"{byte:02x}" for byte in text.encode()),
    "decimal_bytes": lambda text: json.dumps(list(text.encode())),
    "binary_bytes": lambda text: " ".join(f"{byte:08b}" for byte in text.encode()),
    "base32": lambda text: base64.b32encode(text.encode()).decode(),
    "base64_of_utf_16": lambda text: base64.b64encode(text.encode("utf-16-le")).decode(),
    "quoted_base64": lambda text: "\n".join(
        "> " + _base64(text)[at : at + 40] for at in range(0, len(_base64(text)), 40)
    ),
    "tag_characters": lambda text: "".join(
        chr(0xE0000 + ord(letter)) if letter.isascii() else letter for letter in text
    ),
}
