"""Start the shim: `python -m beckon_shim`, set by `BECKON_SHIM_*`."""

import asyncio
import contextlib
import logging.config
import os
import resource
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import uvloop
from pydantic import ValidationError

from beckon_contract.correlation import Keyring
from beckon_runtime import collectors
from beckon_runtime.http_messages import Handler
from beckon_runtime.logs import log_config
from beckon_runtime.process import CannotListen, listen, on_stop_signal, refuse_start, settle_memory
from beckon_runtime.settings import setting_problems
from beckon_shim.service import Service
from beckon_shim.settings import Settings
from beckon_shim.tokens import load_keys
from beckon_sources.api_types import NotConfigured

if TYPE_CHECKING:
    from beckon_shim.cluster import Cluster

# Connections of callers, to the Broker, and of the Broker; and what else a process opens.
_FILES_A_CALL = 2
_FILES_BESIDE = 256
_NO_KEYS = (
    "no keys are set, with which callers sign: set BECKON_SHIM_KEYS or BECKON_SHIM_KEYS_FILE here "
    "and for the agent (openssl rand -hex 32 makes one), or BECKON_SHIM_OPEN_CALLS=true to take every call"
)

logger = logging.getLogger("beckon_shim")


def main() -> int:
    """Run until SIGTERM or SIGINT; return the exit status. 0 is a normal stop, 2 a shim that cannot start."""
    try:
        settings = Settings()
        readable = sys.stderr.isatty()
        logging.config.dictConfig(log_config("shim", readable=readable, level=settings.log_level))
        if not (settings.open_calls or settings.keys or settings.keys_file):
            return refuse_start("beckon-shim", _NO_KEYS)
        keyring = load_keys(settings.keys, settings.keys_file)
    except ValidationError as error:
        return refuse_start("beckon-shim", "; ".join(setting_problems("BECKON_SHIM_", error)))
    except (ValueError, OSError) as error:
        return refuse_start("beckon-shim", f"the keys cannot be used: {error}")
    _raise_file_limit(settings.max_waiting)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, contextlib.ExitStack() as stack:
        try:
            traced = stack.enter_context(_tracing())
        except ValueError as error:
            return refuse_start("beckon-shim", str(error))
        return runner.run(_serve(settings, keyring, traced))


@contextlib.contextmanager
def _tracing() -> Iterator[Callable[[Handler, str | None], Handler] | None]:
    """Export spans if the environment names a collector; yield the wrapper.

    The wrapper traces a handler; it is `None` without a collector. Raises `ValueError` for a
    variable that cannot be used.
    """
    if not collectors.is_named(os.environ):
        yield None
        return
    from beckon_runtime import tracing  # noqa: PLC0415 memory and time for tracing alone
    from beckon_shim.spans import Traced  # noqa: PLC0415 see above

    stop = tracing.start("beckon-shim", os.environ)
    try:
        yield Traced
    finally:
        stop()


async def _serve(
    settings: Settings, keyring: Keyring, traced: Callable[[Handler, str | None], Handler] | None
) -> int:
    try:
        cluster = await _cluster(settings)
    except NotConfigured as error:
        return refuse_start("beckon-shim", f"{error} (BECKON_SHIM_BROKERS=cluster)")
    sockets = []
    for port, name in ((settings.port, "BECKON_PORT"), (settings.reply_port, "BECKON_SHIM_REPLY_PORT")):
        try:
            sockets.append(listen(settings.host, port, f"set {name} to another port"))
        except CannotListen as error:
            return refuse_start("beckon-shim", str(error))
    stop = asyncio.Event()
    on_stop_signal(stop.set)
    service = Service(settings, keyring, (sockets[0], sockets[1]), cluster, traced=traced)
    logger.info(
        "replica %s takes calls on http://%s:%d and replies on http://%s:%d/replies; Brokers at %s",
        settings.own_name,
        settings.host,
        service.port,
        settings.host,
        service.reply_port,
        settings.broker_url if cluster is None else "the addresses in their status",
    )
    settle_memory()
    await service.run(stop)
    logger.info("stopped")
    return 0


async def _cluster(settings: Settings) -> "Cluster | None":
    if settings.brokers == "template":
        return None
    # memory and time that the template mode has no use for
    from beckon_shim.cluster import Account, Cluster  # noqa: PLC0415  # see above
    from beckon_sources.api_client import connect  # noqa: PLC0415  # see above

    account = Account(settings.pod_namespace, settings.service_account) if settings.service_account else None
    return Cluster(await connect("beckon-shim"), settings.served_namespaces, account)


def _raise_file_limit(waiting: int) -> None:
    """Raise the limit of open files for the waiting calls. It never exceeds the hard limit of the system."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES_A_CALL * waiting + _FILES_BESIDE
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if allowed > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < waiting + _FILES_BESIDE:
        logger.warning(
            "%d calls may wait and only %d files may be open: raise the limit (ulimit -Hn) or lower "
            "BECKON_SHIM_MAX_WAITING",
            waiting,
            allowed,
        )


if __name__ == "__main__":
    sys.exit(main())
