"""The adapter's command line: one MCP server run as a command.

Options name the environment variables for it, and the folder of its EventTypes.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from pydantic import ValidationError

from beckon_adapter.bridge.settings import NamedServer
from beckon_tools.errors import UsageError

_FORM = "--mcp NAME [--manifests FOLDER] [--env VARIABLE]… -- COMMAND …"


@dataclass(frozen=True, slots=True)
class Words:
    """The parsed command line: a server and its EventTypes.

    `manifests` is the folder of its EventTypes, if both are in one image.
    """

    server: NamedServer
    manifests: Path | None = None


class _CommandLineParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; it takes no words but {_FORM}, all else is set in the environment")


def read_words(words: Sequence[str], environment: Mapping[str, str]) -> Words | None:
    """Read the command line; raise `UsageError` if it is invalid.

    With it, one Service serves the tools of one MCP server. Returns `None` for an empty one.
    """
    if not words:
        return None
    ours, dashes, command = _split(words)
    parser = _CommandLineParser(
        prog="python -m beckon_adapter", usage=f"%(prog)s [{_FORM}]", allow_abbrev=False
    )
    parser.add_argument("--mcp", metavar="NAME", required=True, help="the name by which EventTypes call it")
    parser.add_argument("--manifests", metavar="FOLDER", type=Path, help="where its EventTypes are")
    parser.add_argument("--env", metavar="VARIABLE", action="append", default=[], help="hand a secret on")
    options = parser.parse_args(ours)
    if not dashes or not command:
        parser.error("the command is missing")
    if missing := [name for name in options.env if name not in environment]:
        raise UsageError(f"--env {missing[0]}: the environment has no such variable; set it, from a Secret")
    given = {name: environment[name] for name in options.env}
    try:
        server = NamedServer(name=options.mcp, command=tuple(command), env=given, secret=frozenset(given))
    except ValidationError as error:
        raise UsageError(f"--mcp {options.mcp[:60]!r}: {error.errors()[0]['msg']}") from None
    return Words(server, options.manifests)


def _split(words: Sequence[str]) -> tuple[Sequence[str], bool, Sequence[str]]:
    if "--" not in words:
        return words, False, ()
    at = words.index("--")
    return words[:at], True, words[at + 1 :]
