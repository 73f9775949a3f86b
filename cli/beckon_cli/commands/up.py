"""`beckon up`: start the local platform and keep it running.

The terminal sends Ctrl-C to the whole foreground process group. `make` in that group
would end with status 130 however well everything was stopped, so `beckon` takes the
foreground for a group of its own, as a shell does for its jobs, and gives it back.
"""

import asyncio
import contextlib
import difflib
import logging.config
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from beckon_cli.local.local_model import MODEL, require_model
from beckon_cli.local.nats import FOLDER, find_silent, show_addresses
from beckon_cli.local.platform import Platform
from beckon_cli.local.running import running_platform
from beckon_cli.output import err, out, own_command
from beckon_cli.settings import Settings, child_environment, load_settings
from beckon_cli.settings_page import TABLES, field_names
from beckon_runtime.logs import log_config


def misspelt(given: Iterable[str]) -> Iterator[str]:
    """Yield a line for each unknown name with the prefix `BECKON_`.

    The line suggests the most similar setting, if there is one.
    """
    known = {name for _, _, settings in TABLES for name, _ in field_names(settings)}
    for name in sorted(given):
        if name.startswith("BECKON_") and name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            yield f"there is no setting {name}{hint}"


@contextlib.contextmanager
def hold_foreground() -> Iterator[None]:
    """Hold the terminal's foreground, if `make` and a terminal are there; else do nothing."""
    if "MAKELEVEL" not in os.environ or not sys.stdin.isatty():
        yield
        return
    terminal = sys.stdin.fileno()
    before = os.tcgetpgrp(terminal)
    # The one who is not in the foreground may not change it, unless it does not listen. And
    # no program would wake us from Ctrl-Z: the shell waits for `make`.
    for number in (signal.SIGTTOU, signal.SIGTSTP):
        signal.signal(number, signal.SIG_IGN)
    os.setpgid(0, 0)
    os.tcsetpgrp(terminal, os.getpgrp())
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # the terminal may be gone
            os.tcsetpgrp(terminal, before)


_QUESTION = "What is 17% of 2340?"
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, kw_only=True)
class Flags:
    """The settings of `beckon up` as flags.

    A flag that is not given comes from the environment or .env.
    """

    manifests: Annotated[Path | None, Parameter(name=["--manifests", "--beckon-manifests"])] = None
    "The folder of EventTypes, Triggers and Services (BECKON_MANIFESTS; deploy/examples)."
    host: Annotated[str | None, Parameter(name=["--host", "--beckon-host"])] = None
    "The address to listen on (BECKON_HOST; 127.0.0.1)."
    port: Annotated[int | None, Parameter(name=["--port", "--beckon-port"])] = None
    "The agent's port; the other ports follow (BECKON_PORT; 8080)."
    openai_base_url: str | None = None
    "An OpenAI-compatible server (OPENAI_BASE_URL; unset: the demo model)."
    openai_api_key: str | None = None
    "Its key; in the environment or .env it is safer: lists of processes show flags (OPENAI_API_KEY)."
    model: Annotated[str | None, Parameter(name=["--model", "--beckon-model"])] = None
    "The model's name there (BECKON_MODEL; unset: the first one it lists); local: a small one served here."
    dialect: Annotated[str | None, Parameter(name=["--dialect", "--beckon-dialect"])] = None
    "How the model calls tools: auto, native, prompted, chatglm3, … (BECKON_DIALECT; auto)."


def up(
    flags: Annotated[Flags, Parameter(name="*")] = Flags(),
    *,
    verbose: bool = False,
    watch: bool = True,
    durable: bool = False,
    yes: bool = False,
) -> None:
    """Start the local platform, and keep it running until Ctrl-C.

    Parameters
    ----------
    verbose
        Show what every service logs (BECKON_LOG_LEVEL=info).
    watch
        Restart a tool of yours when its code changes; --no-watch does not.
    durable
        Keep events in a NATS server, where they survive a restart: one started here from `nats-server` on
        PATH, or that in BECKON_NATS_URL.
    yes
        Install what --model local needs without a question.
    """
    logging.config.dictConfig(log_config("beckon", readable=True))
    if verbose:
        os.environ["BECKON_LOG_LEVEL"] = "info"
    settings = load_settings(**asdict(flags))
    if settings.uses_local_model:
        require_model(yes=yes)
    with hold_foreground():
        asyncio.run(_until_interrupted(settings, watch=watch, durable=durable))


async def _until_interrupted(settings: Settings, *, watch: bool, durable: bool) -> None:
    running = asyncio.create_task(_run(settings, watch=watch, durable=durable))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, running.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await running
    err.print("stopped")


async def _run(settings: Settings, *, watch: bool, durable: bool) -> None:
    for line in misspelt(child_environment()):
        err.print(Text(line, style="yellow"))
    async with running_platform(settings, watch=watch, durable=durable) as platform:
        _print_banner(platform)
        if silent := await find_silent(settings.nats_url.get_secret_value()):
            err.print(Text.assemble(("no answer", "yellow"), f" from {silent}: the broker waits for NATS"))
        try:
            await asyncio.Event().wait()
        finally:
            err.print("stopping …")


def _print_banner(platform: Platform) -> None:
    where, settings = platform.addresses, platform.settings
    api = f"OpenAI base URL: {where.agent}/v1, models: {', '.join(platform.agents)}"
    out.print(Text.assemble(("agent", "bold"), f"   {where.agent}   (open it in a browser; {api})"))
    out.print(f"broker  {where.broker}   {_describe_log(platform)}")
    out.print(f"shim    {where.shim}   replies at {where.replies}")
    out.print(f"model   {_describe_model(platform)}")
    names = ", ".join(
        f"{name.partition('/')[2]} :{url.rpartition(':')[2]}" for name, url in platform.tools.items()
    )
    out.print(f"tools   {names or 'none'}   from {settings.manifests}")
    if settings.host not in _LOOPBACK:
        admission = "keys, tokens or BECKON_ANONYMOUS say who is admitted"
        reached = Text.assemble(
            ("others reach it", "yellow"), f": {settings.host} is not loopback; {admission}"
        )
        err.print(reached)
    out.print()
    port = "" if settings.port == 8080 else f"BECKON_PORT={settings.port} "
    beckon = own_command()
    ask = f'{beckon} ask "{_QUESTION}"'
    if "MAKELEVEL" in os.environ:
        ask = f'make ask Q="{_QUESTION}"'
    out.print(f"Next:   {port}{ask if 'default/calculator' in platform.tools else f'{beckon} tools'}")
    out.print(f"        {port}{beckon} chat      (also: tools, call, check; --help teaches)")
    out.print("Ctrl-C stops all of it.")


def _describe_model(platform: Platform) -> str:
    where, settings = platform.addresses, platform.settings
    if where.demo:
        return f"{where.demo}   the demo model: a stand-in, no language model"
    if where.local_model:
        return f"{where.local_model}   {MODEL}: a very small language model, often wrong"
    return f"{settings.model or 'the first model'} at {settings.openai_base_url}"


def _describe_log(platform: Platform) -> str:
    """Return where the broker's events are, and what they survive."""
    if own := platform.addresses.nats:
        return f"events survive a restart: in NATS at {own}, stored in {FOLDER}"
    if url := platform.settings.nats_url.get_secret_value():
        return f"events survive a restart: in NATS at {show_addresses(url)}"
    return "in memory: events are lost when it ends"
