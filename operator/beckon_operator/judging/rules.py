"""What the operator is told about its installation, as far as Tools are judged by it."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

_REPLIES = "/replies"
_DEAD_LETTERS = "/dead-letters"
_IN_CLUSTER = re.compile(r"([a-z0-9-]+)\.([a-z0-9-]+)\.svc(?:\..+)?")
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Rules:
    """Where replies and dead letters have to go, and by which attribute a reply is known."""

    replies_url: str
    reply_attribute: str = "replyid"
    cluster_domain: str = "cluster.local"

    @property
    def replies(self) -> str:
        """The URL that takes replies."""
        return self.replies_url.rstrip("/") + _REPLIES

    @property
    def dead_letters(self) -> str:
        """The URL that takes dead letters."""
        return self.replies_url.rstrip("/") + _DEAD_LETTERS


def same_place(one: str, other: str) -> bool:
    """Whether two URLs lead to one place: the cluster's domain, default ports and a last slash aside."""
    try:
        return _place(one) == _place(other)
    except ValueError:
        return False


def _place(url: str) -> tuple[str, str, int | None, str]:
    parts = urlsplit(url)
    host = parts.hostname or ""
    found = _IN_CLUSTER.fullmatch(host)
    if found:
        host = f"{found[1]}.{found[2]}.svc"
    return parts.scheme, host, parts.port or _PORTS.get(parts.scheme), parts.path.rstrip("/")
