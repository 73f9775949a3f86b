"""The trace of a run that another process goes on with: noted when it begins, taken up when it is resumed."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry.context import attach, detach

from beckon_contract.tracing import carried, continued

_MEMBER = "traceparent"


def to_store() -> dict[str, object]:
    """Return the current trace as a member of a run's `request`, nothing where there is none."""
    return {_MEMBER: carried()[_MEMBER]} if _MEMBER in carried() else {}


@contextmanager
def rejoined(request: Mapping[str, object]) -> Iterator[None]:
    """Let what begins inside belong to the trace in which the run of this `request` began."""
    noted = request.get(_MEMBER)
    context = continued({_MEMBER: noted}) if isinstance(noted, str) else None
    if context is None:
        yield
        return
    token = attach(context)
    try:
        yield
    finally:
        detach(token)
