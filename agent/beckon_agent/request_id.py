"""The id of the request that is being served: in its answer, in the log, and at the services behind."""

from contextvars import ContextVar

_current: ContextVar[str] = ContextVar("request_id", default="-")


def request_id() -> str:
    """Return the id of this task's request, "-" where there is none."""
    return _current.get()


def set_request_id(value: str) -> None:
    """Say which request this task, and every task that it starts, works for."""
    _current.set(value)
