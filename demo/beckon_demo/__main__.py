"""The demo model's server: reads its settings, serves until stopped."""

import logging.config
import signal
import socket
import sys
from types import FrameType

import uvicorn
from pydantic import ValidationError
from pydantic_settings import CliApp

from beckon_demo.app import build_app
from beckon_demo.settings import Settings
from beckon_runtime.asgi import server_config
from beckon_runtime.logs import log_config
from beckon_runtime.settings import setting_problems

_CLOSING_SECONDS = 5

logger = logging.getLogger("beckon_demo")


def main() -> int:
    """Serve; return 2 for a wrong setting or a taken port."""
    try:
        settings = CliApp.run(Settings)
    except ValidationError as error:
        return _refuse(setting_problems("BECKON_DEMO_", error)[0])
    readable = sys.stderr.isatty()
    logging.config.dictConfig(log_config("demo", readable=readable, level=settings.log_level))
    try:
        listener = socket.create_server((settings.host, settings.port), backlog=1024)
    except OSError as error:
        return _refuse(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror}; choose another --port"
        )
    host, port = listener.getsockname()[:2]
    logger.info("the demo model (a stand-in, no language model) answers at http://%s:%d/v1", host, port)
    server = uvicorn.Server(
        server_config(
            build_app(),
            settings.origin_policy(settings.host),
            settings.connection_limits(),
            closing_seconds=_CLOSING_SECONDS,
        )
    )

    def stop(_number: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    # uvicorn raises the signal again once it has stopped: without these, a graceful stop would
    # end as a death by signal.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    with listener:
        server.run(sockets=[listener])
    return 0


def _refuse(reason: str) -> int:
    sys.stderr.write(f"beckon_demo: {reason}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
