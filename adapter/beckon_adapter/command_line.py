"""The adapter's command line, and its duties as the first process of a container."""

import argparse
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from pydantic import ValidationError

from beckon_adapter.mcp.rule import NamedServer
from beckon_tools.errors import UsageError

_FORM = "--mcp NAME [--manifests FOLDER] [--env VARIABLE]… -- COMMAND …"


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The parsed command line: a server and its EventTypes.

    `manifests` is the folder of its EventTypes, if both are in one image.
    """

    server: NamedServer
    manifests: Path | None = None


class _CommandLineParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; it takes no words but {_FORM}, all else is set in the environment")


def read_command_line(words: Sequence[str], environment: Mapping[str, str]) -> CommandLine | None:
    """Read the command line; raise `UsageError` if it is invalid.

    With it, one Service serves the tools of one MCP server. Returns `None` for an empty one.
    """
    if not words:
        return None
    ours, dashes, command = _split_command(words)
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
    return CommandLine(server, options.manifests)


def _split_command(words: Sequence[str]) -> tuple[Sequence[str], bool, Sequence[str]]:
    if "--" not in words:
        return words, False, ()
    at = words.index("--")
    return words[:at], True, words[at + 1 :]


_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def act_as_init() -> None:
    """Act as init if this process is PID 1.

    The program then continues in a child process. This one reaps orphans, forwards signals, and exits
    with the child's exit code.

    Returns in the child, or at once if this process is not PID 1.
    """
    if os.getpid() != 1:
        return
    # Until there is a child to hand them to, signals wait.
    signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
        return

    def hand_on(number: int, _frame: FrameType | None) -> None:
        os.kill(child, number)

    for number in _FORWARDED:
        signal.signal(number, hand_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
    while True:
        ended, status = os.wait()
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            sys.stderr.flush()
            os._exit(code if code >= 0 else 128 - code)
