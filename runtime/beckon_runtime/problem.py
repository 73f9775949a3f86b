"""Problem details for HTTP answers (RFC 9457), the one error shape of every room's HTTP."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import orjson

MEDIA_TYPE = "application/problem+json"
TYPE_BASE = "https://beckon.dev/problems/"
# A dead-lettered error body above 768 bytes crashes Knative's in-memory channel dispatcher
# (eventing-natss#434); 512 leave room for what proxies add.
DEAD_LETTER_LIMIT = 512


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


class ProblemError(Exception):
    """An error answered with a problem document."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


def for_dead_letter(problem: Problem) -> Problem:
    """Return a problem of at most `DEAD_LETTER_LIMIT` bytes.

    This is the size of its body. If it is too large, the members are left out and the detail is cut.
    """
    shorter, members = problem, len(problem.detail)
    while (excess := len(shorter.body()) - DEAD_LETTER_LIMIT) > 0 and members:
        # Every excess byte costs at least a sixth of a character, six being JSON's longest escape.
        members = max(0, members - max(1, excess // 6))
        shorter = replace(problem, detail=problem.detail[:members].rstrip() + "…", members={})
    return shorter
