"""How every service logs: JSON lines for machines, short lines for a terminal."""

import logging
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

from pythonjsonlogger.json import JsonFormatter

from beckon_runtime.terminal import printable

LogLevel = Literal["debug", "info", "warning", "error"]
"""The least severity that is logged: the setting `BECKON_LOG_LEVEL` of every service."""

QUIET_LOGGERS = "BECKON_QUIET_LOGGERS"
"""The variable with the names of loggers that log errors alone, separated by commas.

It is no setting: `beckon up` sets it in its processes, and writes the warnings of these loggers itself, once.
"""

_ROOMS = (
    "adapter",
    "agent",
    "broker",
    "cli",
    "contract",
    "demo",
    "operator",
    "runtime",
    "shim",
    "sources",
    "tools",
)
Fields = Callable[[], Mapping[str, str]]
"""What a line of JSON says beside its message, such as the ids of the trace and the request."""

_context: ContextVar[Mapping[str, str]] = ContextVar("log_context", default={})  # noqa: B039  # it is never changed

_FIELDS = ("levelname", "name", "message")


@contextmanager
def log_context(**fields: str) -> Iterator[None]:
    """Add fields such as `tool` and `event_id` to log lines.

    They are in all lines of JSON written inside. Not for use around the pieces of a generator, which may
    run in several tasks: see `extend_log_context`.
    """
    token = _context.set({**_context.get(), **fields})
    try:
        yield
    finally:
        _context.reset(token)


def extend_log_context(**fields: str) -> None:
    """Add fields to all further log lines of this task.

    They are also in the lines of every task that it starts.
    """
    _context.set({**_context.get(), **fields})


def log_config(
    service: str, *, readable: bool, level: LogLevel = "info", fields: Fields = dict
) -> dict[str, Any]:
    """Return the `logging.config.dictConfig` document of a service, for its `__main__` to apply.

    Both forms go to standard error. `debug` is for Beckon's own loggers: libraries would write headers and
    bodies, with the secrets in them. Libraries that log every request are quiet below WARNING.
    """
    of_others = "INFO" if level == "debug" else level.upper()
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "readable": {
                "()": _ReadableFormatter,
                "fmt": f"%(asctime)s {service} %(levelname)s %(message)s",
                "datefmt": "%H:%M:%S",
            },
            "json": {"()": json_formatter, "service": service},
        },
        "filters": {"fields": {"()": _WithFields, "fields": fields}},
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "readable" if readable else "json",
                "filters": ["fields"],
            }
        },
        "root": {"level": of_others, "handlers": ["stderr"]},
        "loggers": {f"beckon_{room}": {"level": level.upper()} for room in _ROOMS}
        | {
            name: {"level": "WARNING"}
            for name in ("aiohttp", "httpx", "httpx2", "mcp", "openai", "uvicorn", "watchfiles")
        }
        # Logs every retry as a warning; the caller that retried reports the outcome.
        | {"stamina": {"level": "ERROR"}}
        | {name: {"level": "ERROR"} for name in os.environ.get(QUIET_LOGGERS, "").split(",") if name},
    }


def point_to_log(part: str, words: str) -> str:
    """Return where the log of a part has the details of a failure.

    `words` are in its lines: the id of a request, a run or a call. For an error message.
    """
    pods = f"-n beckon -l app.kubernetes.io/component={part}"
    command = f"kubectl logs {pods} --tail=-1 | grep {shlex.quote(words)}"
    return f"the log of the {part} has the details, under {words}: {command} (or the terminal of beckon up)"


class _ReadableFormatter(logging.Formatter):
    """Formats lines for a terminal, which must not obey what a line quotes."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


class _WithFields(logging.Filter):
    """Adds the context fields to every record.

    They are those of `log_context` and `extend_log_context`, and those that `fields` returns.
    """

    def __init__(self, fields: Fields) -> None:
        super().__init__()
        self._fields = fields

    def filter(self, record: logging.LogRecord) -> bool:
        record.__dict__.update(_context.get())
        record.__dict__.update(self._fields())
        return True


def json_formatter(service: str) -> JsonFormatter:
    """Return the formatter of JSON lines: time, level, logger, message, and the service."""
    return JsonFormatter(
        list(_FIELDS),
        rename_fields={"levelname": "level", "name": "logger"},
        static_fields={"service": service},
        timestamp="time",
    )
