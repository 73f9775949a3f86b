"""What a request before 2026-07-28 wants, read ahead of the SDK, which must be told how to answer."""

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from beckon_agent.agents.registry import AgentHandle

_SILENCE = 30.0  # seconds; proxies cut a connection on which nothing is sent for longer


@dataclass(frozen=True, slots=True)
class Opening:
    """Whether a request begins a session, and whether it is answered by a stream.

    JSON takes half the time, and clients limit it less; only a stream can tell of progress and stay alive.
    """

    begins: bool
    streams: bool


def read(body: bytes, hosted: AgentHandle) -> Opening:
    """Read a body, whatever it is: the SDK refuses what is wrong."""
    try:
        message = _members(orjson.loads(body))
    except orjson.JSONDecodeError:
        message = {}
    method = message.get("method")
    called = _members(message.get("params")) if method == "tools/call" else {}
    reported = "progressToken" in _members(called.get("_meta"))
    return Opening(method == "initialize", reported or _is_slow(called.get("name"), hosted))


def _is_slow(name: object, hosted: AgentHandle) -> bool:
    tool = hosted.catalogue.current.tools.get(name) if isinstance(name, str) else None
    return tool is not None and (tool.timeout or hosted.agent.limits.call_timeout) > _SILENCE


def _members(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
