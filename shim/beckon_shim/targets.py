"""The Broker of a path, and its address."""

import re
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from beckon_shim import responses
from beckon_shim.messages import Answer

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_PATH = re.compile(rf"/({_LABEL})/((?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*)\Z")
_KNOWN_PATHS = 4096


class Target(NamedTuple):
    """The destination of events: URL, trusted certificates, token audience.

    `ca_certs` are PEM certificates to trust in addition to the system's; `audience` is empty if no token is
    needed. It is a plain tuple, because it is looked up for every post.
    """

    url: str
    ca_certs: str = ""
    audience: str = ""


class Brokers(Protocol):
    """Finds the addresses of Brokers."""

    @property
    def why_unready(self) -> str:
        """The reason why no call can be taken yet; empty for none."""
        ...

    def find(self, path: str) -> Target | Answer:
        """Return the Broker of the path `/<namespace>/<broker>`, or a refusal.

        The refusal is the answer for the caller, and gives the reason.
        """
        ...


class Templates:
    """The Brokers' URLs by path, made of a template like `http://host/{namespace}/{name}`.

    A template without placeholders is the one Broker of every path.
    """

    why_unready = ""

    def __init__(self, template: str) -> None:
        unknown = set(_PLACEHOLDER.findall(template)) - {"namespace", "name"}
        if unknown:
            raise ValueError(f"unknown placeholders {sorted(unknown)}; there are {{namespace}} and {{name}}")
        parts = urlsplit(_PLACEHOLDER.sub("x", template))
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("not an HTTP URL; write for example http://broker:8081/{namespace}/{name}")
        self._template = template
        self._single = None if _PLACEHOLDER.search(template) else Target(template)
        self._known: dict[str, Target] = {}

    def find(self, path: str) -> Target | Answer:
        """Return the Broker of a path, or 404 if it names none."""
        if self._single is not None:
            return self._single
        target = self._known.get(path)
        if target is None:
            named = named_broker(path)
            if named is None:
                return responses.no_such_path(responses.CALL_PATH)
            target = Target(self._template.format(namespace=named[0], name=named[1]))
            if len(self._known) < _KNOWN_PATHS:
                self._known[path] = target
        return target


def named_broker(path: str) -> tuple[str, str] | None:
    """Return the namespace and the name in `/<namespace>/<broker>`, `None` for another path."""
    named = _PATH.match(path)
    return None if named is None else (named[1], named[2])
