"""What a request asks of the model, kept with its run: whoever resumes it must ask the same."""

from collections.abc import Mapping

from pydantic import TypeAdapter

from beckon_agent.runs import Options

_OPTIONS = TypeAdapter(Options)


def to_request(options: Options) -> dict[str, object]:
    """Return the options as a part of a run's request."""
    return {"options": _OPTIONS.dump_python(options, mode="json")}


def from_request(request: Mapping[str, object]) -> Options:
    """Return the options that were put into a request; the default ones for a run without."""
    return _OPTIONS.validate_python(request.get("options") or {})
