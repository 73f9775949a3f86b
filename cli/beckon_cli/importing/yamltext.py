"""Manifests as people write them: lists indented, texts of several lines as blocks, in a stable order."""

import json
import re
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

_STRING = "tag:yaml.org,2002:str"
# What YAML takes for a line break of its own, or for no character at all.
_UNPRINTABLE = re.compile(
    "[^\\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


class _Dumper(yaml.SafeDumper):
    """A YAML dumper without aliases, with indented lists.

    No reader of manifests expects aliases.
    """

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar(_STRING, value, style='"' if _UNPRINTABLE.search(value) else style)


_Dumper.add_representer(str, _represent_text)


def write_yaml(document: Mapping[str, Any]) -> str:
    """Return a document as YAML."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def write_manifest(document: Mapping[str, Any], notes: Iterable[str] = ()) -> str:
    """Return an object as one document of a manifest, with notes as comments above it."""
    lines = [line for note in notes for line in textwrap.wrap(_one_line(note), 98, break_long_words=False)]
    return "".join(["---\n", *(f"# {line}\n" for line in lines), write_yaml(document)])


def _one_line(text: str) -> str:
    """Return a text as one line, safe inside a YAML comment.

    YAML breaks lines at some characters other than a newline, too; they are replaced by spaces.
    """
    return " ".join(_UNPRINTABLE.sub(" ", text).split())


def json_text(value: object) -> str:
    """Return a value as indented JSON for a YAML block.

    Characters that YAML does not allow there are written as JSON escapes.
    """
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return _UNPRINTABLE.sub(lambda found: json.dumps(found[0])[1:-1], text)
