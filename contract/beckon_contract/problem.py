"""Problem details for HTTP answers (RFC 9457), the one error shape of every room's HTTP."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

MEDIA_TYPE = "application/problem+json"
TYPE_BASE = "https://beckon.dev/problems/"


@dataclass(frozen=True, slots=True)
class Problem:
    """An error answer: `slug` names its kind, `detail` the cause and the cure."""

    status: int
    slug: str
    title: str
    detail: str
    members: Mapping[str, object] = field(default_factory=dict)

    def document(self) -> dict[str, object]:
        """Return the members of the problem document."""
        return {
            **self.members,
            "type": TYPE_BASE + self.slug,
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
        }

    def body(self) -> bytes:
        """Return the problem document as JSON."""
        return orjson.dumps(self.document())
