"""`python -m beckon_broker`: reads the settings, builds the broker, serves until SIGTERM.

Exit codes: 0 after a stop by signal, 2 where the settings are wrong or the port is taken.
"""

import asyncio
import logging.config
import sys

from pydantic import ValidationError
from uvicorn.loops.auto import auto_loop_factory

from beckon_broker.server import listen
from beckon_broker.service import Service
from beckon_broker.settings import Settings
from beckon_contract.logs import log_config
from beckon_contract.variables import setting_problem

logger = logging.getLogger("beckon_broker")

_USAGE = 2


def main() -> int:
    """Run the broker; return the exit code."""
    try:
        settings = Settings()
    except ValidationError as error:
        for problem in error.errors():
            line = setting_problem("BECKON_BROKER_", problem["loc"], problem["msg"])
            print(f"beckon-broker: {line}", file=sys.stderr)
        return _USAGE
    readable = sys.stderr.isatty()
    logging.config.dictConfig(log_config("broker", readable=readable, level=settings.log_level))
    try:
        listener = listen(settings.host, settings.port)
    except OSError as error:
        print(
            f"beckon-broker: cannot listen on {settings.host}:{settings.port}: {error.strerror}; "
            "set BECKON_BROKER_PORT and BECKON_HOST to an address that is free",
            file=sys.stderr,
        )
        return _USAGE
    with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
        lost = runner.run(Service(settings, listener).run())
    if lost:
        logger.warning("stopped; queued events lost, as they were in memory only: %d", lost)
    else:
        logger.info("stopped; no event is lost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
