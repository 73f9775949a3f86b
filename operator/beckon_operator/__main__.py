"""Start the operator: `python -m beckon_operator`, set by `BECKON_OPERATOR_*`."""

import asyncio
import logging.config
import socket
import sys

from pydantic import ValidationError

from beckon_operator.app import Operator
from beckon_operator.settings import Settings
from beckon_runtime.logs import log_config
from beckon_runtime.process import CannotListen, listen, on_stop_signal, refuse_start
from beckon_runtime.settings import setting_problems
from beckon_sources.api_client import connect
from beckon_sources.api_types import NotConfigured

logger = logging.getLogger("beckon_operator")

_ANSWER = 10.0  # seconds of silence of the API server; a Lease cannot wait for longer


def main() -> int:
    """Run until SIGTERM or SIGINT; return the exit status.

    0 is a normal stop, 1 an operator that cannot go on, 2 one that cannot start.
    """
    try:
        settings = Settings()
    except ValidationError as error:
        return refuse_start("beckon-operator", "; ".join(setting_problems("BECKON_OPERATOR_", error)))
    document = log_config("operator", readable=sys.stderr.isatty(), level=settings.log_level)
    document["loggers"]["kopf"] = {"level": "WARNING"}
    logging.config.dictConfig(document)
    try:
        listener = listen(settings.host, settings.port)
    except CannotListen as error:
        return refuse_start("beckon-operator", str(error))
    return asyncio.run(_run_operator(settings, listener))


async def _run_operator(settings: Settings, listener: socket.socket) -> int:
    try:
        api = await connect("beckon-operator", answer_seconds=_ANSWER)
    except NotConfigured as error:
        return refuse_start("beckon-operator", str(error))
    stop = asyncio.Event()
    on_stop_signal(stop.set)
    operator = Operator(settings, api)
    running = asyncio.create_task(operator.run_operator(listener, lambda: on_stop_signal(stop.set)))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait((running, stopping), return_when=asyncio.FIRST_COMPLETED)
    await operator.stop_leading()
    failed = running.done() and running.exception()
    if failed:
        logger.error("the operator cannot go on", exc_info=failed)
    for task in (running, stopping):
        task.cancel()
    await asyncio.gather(running, stopping, return_exceptions=True)
    await operator.close_connections()
    logger.info("stopped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
