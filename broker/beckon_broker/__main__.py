"""`python -m beckon_broker`: reads the settings, builds the broker, serves until SIGTERM.

Exit codes: 0 after a stop by signal, 2 where the settings are wrong or the port is taken.
"""

import asyncio
import contextlib
import logging.config
import os
import sys
from collections.abc import Callable, Iterator

import uvloop
from pydantic import ValidationError

from beckon_broker.sender import Post
from beckon_broker.service import Service
from beckon_broker.settings import Settings
from beckon_runtime import collectors
from beckon_runtime.logs import log_config
from beckon_runtime.process import CannotListen, listen, on_stop_signal, refuse_start, settle_memory
from beckon_runtime.settings import setting_problems
from beckon_sources.api_types import NotConfigured

logger = logging.getLogger("beckon_broker")


def main() -> int:
    """Run the broker; return the exit code."""
    try:
        settings = Settings()
    except ValidationError as error:
        return refuse_start("beckon-broker", "; ".join(setting_problems("BECKON_BROKER_", error)))
    readable = sys.stderr.isatty()
    logging.config.dictConfig(log_config("broker", readable=readable, level=settings.log_level))
    try:
        listener = listen(settings.host, settings.port)
    except CannotListen as error:
        return refuse_start("beckon-broker", str(error))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, contextlib.ExitStack() as stack:
        try:
            traced = stack.enter_context(_tracing())
        except ValueError as error:
            return refuse_start("beckon-broker", str(error))
        settle_memory()
        try:
            lost = runner.run(_serve(Service(settings, listener, traced)))
        except NotConfigured as error:
            return refuse_start("beckon-broker", str(error))
    if lost:
        logger.warning("stopped; queued events lost, as they were in memory only: %d", lost)
    else:
        logger.info("stopped; no event is lost")
    return 0


async def _serve(service: Service) -> int:
    on_stop_signal(service.stop)
    return await service.run()


@contextlib.contextmanager
def _tracing() -> Iterator[Callable[[Post], Post] | None]:
    """Export spans to the collector named in the environment.

    Yields the wrapper of posts that makes the spans, `None` without a collector. Raises `ValueError`.
    """
    if not collectors.is_named(os.environ):
        yield None
        return
    from beckon_broker.spans import TracedPost  # noqa: PLC0415 memory and time for tracing alone
    from beckon_runtime import tracing  # noqa: PLC0415 see above

    stop = tracing.start("beckon-broker", os.environ)
    try:
        yield TracedPost
    finally:
        stop()


if __name__ == "__main__":
    sys.exit(main())
