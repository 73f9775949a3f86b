"""The composition root of the adapter: settings, the source of EventTypes, the server, the exit code."""

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from pydantic import ValidationError
from pydantic_settings import BaseSettings

from beckon_adapter.app import Source, new_app
from beckon_adapter.declaration import RuleRegistry
from beckon_adapter.rule import NamedServer
from beckon_adapter.settings import AdapterSettings
from beckon_runtime.egress import AllowedHosts
from beckon_runtime.settings import setting_problems
from beckon_sources.api_types import NotConfigured
from beckon_tools.__main__ import read_settings
from beckon_tools.errors import UsageError
from beckon_tools.server import run_app

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
    variables = {name: environment[name] for name in options.env}
    try:
        server = NamedServer(
            name=options.mcp, command=tuple(command), env=variables, secret=frozenset(variables)
        )
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


logger = logging.getLogger(__name__)

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def main() -> int:
    """Serve until SIGTERM; return 2 for an invalid setting or argument."""
    act_as_init()
    try:
        _run_adapter(read_command_line(sys.argv[1:], os.environ))
    except UsageError as error:
        sys.stderr.write(f"beckon_adapter: {error}\n")
        return 2
    return 0


def _run_adapter(words: CommandLine | None) -> None:
    tools = read_settings()
    settings = _adapter_settings()
    if words:
        more: dict[str, object] = {"mcp_servers": (words.server, *settings.mcp_servers)}
        settings = settings.model_copy(update=more)
    own = words.manifests if words else None
    if own is not None:
        if not own.is_dir():
            raise UsageError(f"--manifests {own}: there is no such folder")
        settings = settings.model_copy(update={"manifests": (own,)})
    # They log every URL, headers and messages, which hold arguments and credentials.
    for noisy in ("httpx2", "httpcore2", "mcp"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # It logs answers that are no messages, with their content; calls report them.
    logging.getLogger("mcp.client").setLevel(logging.CRITICAL)
    if any(name in os.environ or name.lower() in os.environ for name in _PROXIES):
        logger.warning("the proxy of the environment is not used: APIs are called directly")
    if not (settings.allowed_hosts or settings.manifests or settings.mcp_servers):
        logger.warning("no hosts are allowed, so every call is refused; set BECKON_ADAPTER_ALLOWED_HOSTS")
    server = words.server.name if words and own else ""
    app = new_app(
        settings, tools, lambda registry, allowed: _choose_source(settings, registry, allowed), server
    )
    run_app(app, "beckon-adapter", tools, redacted=True)  # the library of MCP would write them


def _choose_source(settings: AdapterSettings, registry: RuleRegistry, allowed: AllowedHosts) -> Source:
    if settings.manifests:
        from beckon_adapter.folders import FolderSource  # noqa: PLC0415 one of the two is needed

        return FolderSource(settings.manifests, registry, allowed)
    from beckon_adapter.cluster import ClusterSource  # noqa: PLC0415 costs memory and time
    from beckon_sources.api_client import connect  # noqa: PLC0415 costs memory and time

    try:
        return ClusterSource(asyncio.run(connect("beckon-adapter")), settings.namespaces, registry)
    except NotConfigured as error:
        raise UsageError(f"{error}, or set BECKON_MANIFESTS to folders") from None


def _adapter_settings() -> AdapterSettings:
    try:
        return AdapterSettings()
    except ValidationError as error:
        raise UsageError(setting_problems(_env_prefix(AdapterSettings), error)[0]) from None


def _env_prefix(settings: type[BaseSettings]) -> str:
    return settings.model_config.get("env_prefix", "")


if __name__ == "__main__":
    sys.exit(main())
