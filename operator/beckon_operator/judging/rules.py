"""The installation settings needed to judge Tools."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

_REPLIES = "/replies"
_DEAD_LETTERS = "/dead-letters"
_IN_CLUSTER = re.compile(r"([a-z0-9-]+)\.([a-z0-9-]+)\.svc(?:\..+)?")
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class JudgingRules:
    """The URL for replies and dead letters, and the reply attribute.

    An event with the reply attribute is a reply.
    """

    replies_url: str
    reply_attribute: str = "replyid"
    cluster_domain: str = "cluster.local"

    @property
    def replies(self) -> str:
        """The URL for replies."""
        return self.replies_url.rstrip("/") + _REPLIES

    @property
    def dead_letters(self) -> str:
        """The URL for dead letters."""
        return self.replies_url.rstrip("/") + _DEAD_LETTERS


def same_place(one: str, other: str) -> bool:
    """Return True if two URLs lead to the same place.

    The cluster's domain, default ports and a last slash make no difference.
    """
    try:
        return _parse_place(one) == _parse_place(other)
    except ValueError:
        return False


def _parse_place(url: str) -> tuple[str, str, int | None, str]:
    parts = urlsplit(url)
    host = parts.hostname or ""
    found = _IN_CLUSTER.fullmatch(host)
    if found:
        host = f"{found[1]}.{found[2]}.svc"
    return parts.scheme, host, parts.port or _PORTS.get(parts.scheme), parts.path.rstrip("/")
