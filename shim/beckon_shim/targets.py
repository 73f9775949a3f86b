"""Which Broker a path means."""

import re
from urllib.parse import urlsplit

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_PATH = re.compile(rf"/({_LABEL})/((?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*)\Z")
_KNOWN_PATHS = 4096


class Targets:
    """The Brokers' URLs by path, made of a template like `http://host/{namespace}/{name}`.

    A template without placeholders is the one Broker of every path.
    """

    def __init__(self, template: str) -> None:
        unknown = set(_PLACEHOLDER.findall(template)) - {"namespace", "name"}
        if unknown:
            raise ValueError(f"unknown placeholders {sorted(unknown)}; there are {{namespace}} and {{name}}")
        parts = urlsplit(_PLACEHOLDER.sub("x", template))
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("not an HTTP URL; write for example http://broker:8081/{namespace}/{name}")
        self._template = template
        self._single = not _PLACEHOLDER.search(template)
        self._known: dict[str, str] = {}

    def url(self, path: str) -> str | None:
        """Return the URL for the path `/<namespace>/<broker>`, `None` where it names none."""
        if self._single:
            return self._template
        url = self._known.get(path)
        if url is None:
            named = _PATH.match(path)
            if named is None:
                return None
            url = self._template.format(namespace=named[1], name=named[2])
            if len(self._known) < _KNOWN_PATHS:
                self._known[path] = url
        return url
