"""A tool as a running server: its own socket, uvicorn on it, a graceful stop on SIGTERM."""

import logging
import os

from beckon_runtime import tracing
from beckon_runtime.asgi import DrainingServer, server_config
from beckon_runtime.process import CannotListen, listen
from beckon_tools.app import Application, app
from beckon_tools.declaration import AnyTool
from beckon_tools.errors import UsageError
from beckon_tools.settings import Settings

logger = logging.getLogger(__name__)


def serve(tool: AnyTool, host: str = "127.0.0.1", port: int = 8080) -> None:
    """Serve a tool until SIGTERM or SIGINT. Raises `UsageError` if the port is not available."""
    run_tool(tool, Settings.model_construct(host=host, port=port))


def run_tool(tool: AnyTool, settings: Settings) -> None:
    """Serve a tool by the settings, until SIGTERM or SIGINT.

    Running calls are finished first, within `drain_seconds`.
    """
    run_app(app(tool, settings), tool.service, settings)


def run_app(asgi_app: Application, service: str, settings: Settings, *, redacted: bool = False) -> None:
    """Serve an application, called `service` in traces, as `run` serves a tool.

    With `redacted` its spans have no error messages.
    """
    try:
        stop_tracing = tracing.start(service, os.environ, redacted=redacted)
    except ValueError as error:
        raise UsageError(str(error)) from None
    try:
        listener = listen(settings.host, settings.port, "choose another with --port")
    except CannotListen as error:
        raise UsageError(str(error)) from None
    address, port = listener.getsockname()[:2]
    logger.info("serving %s at http://%s:%s", service, address, port)
    running = make_server(asgi_app, settings)
    with listener:
        running.run(sockets=[listener])
    stop_tracing()
    logger.info("stopped")


def make_server(asgi_app: Application, settings: Settings) -> DrainingServer:
    """Return the server of an application, not yet running."""
    return DrainingServer(
        server_config(
            asgi_app,
            settings.origin_policy(settings.host),
            settings.connection_limits(),
            closing_seconds=settings.drain_seconds,
        )
    )
