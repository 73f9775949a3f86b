"""A tool as a Knative Function, for the Python runtime of Functions.

The runtime needs a file `function/func.py`:

    from beckon_tools.function import Function
    from function.orders import order_status

    def new() -> Function:
        return Function(order_status)

The template is `func create --language python --template http`.
"""

import os
from collections.abc import Callable, Mapping

from beckon_runtime import tracing
from beckon_tools.app import Receive, Scope, Send, ToolApp
from beckon_tools.declaration import AnyTool
from beckon_tools.settings import Settings


class Function:
    """An instance of a function; the runtime serves health, and calls the methods.

    Settings come from the environment: `func config envs` sets them. Raises `UsageError`, and
    pydantic's `ValidationError`, for those that cannot be followed.
    """

    def __init__(self, tool: AnyTool, settings: Settings | None = None) -> None:
        self._tool = tool
        self._app = ToolApp(tool, settings or Settings())
        self._stop_tracing: Callable[[], None] | None = None

    def start(self, environment: Mapping[str, str]) -> None:
        """Begin, before the first request."""
        self._stop_tracing = tracing.start(self._tool.service, environment or os.environ)

    def stop(self) -> None:
        """End, after the last request was answered."""
        if self._stop_tracing is not None:
            self._stop_tracing()

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._app(scope, receive, send)
