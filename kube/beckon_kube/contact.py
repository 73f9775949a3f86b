"""Whether the API server answers: what the log, the metrics and `/readyz` say of it."""

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

logger = logging.getLogger(__name__)

_NOT_READ = "not read yet"


@dataclass(slots=True)
class Line:
    """One watched collection: whether it was read once, whether it is watched now, and its last word.

    Without one that is not `required` the service is ready where the API server refuses it: a
    namespace that was deleted with its roles must not keep all others from their agents.
    """

    name: str
    required: bool = True
    complete: bool = False
    refused: bool = False
    trouble: str | None = _NOT_READ
    heard: float = field(default_factory=time.monotonic)

    @property
    def enough(self) -> bool:
        """Whether the service can do with what is known of it."""
        return self.complete or (self.refused and not self.required)

    @property
    def state(self) -> str:
        """What is wrong with it, in words; "" where nothing is."""
        if self.trouble == _NOT_READ:
            return "the API server has not answered yet"
        return f"cannot follow {self.name}: {self.trouble}" if self.trouble else ""

    def hear(self) -> None:
        """Note that the API server has just said something about it."""
        self.heard = time.monotonic()


class Contact:
    """The lines to the API server, all of them together."""

    def __init__(self, cures: Mapping[int, str]) -> None:
        """Say beside a refusal what mends it, by the status of HTTP."""
        self._cures = cures
        self._lines: list[Line] = []
        self._complete = asyncio.Event()

    def line(self, name: str, *, required: bool = True) -> Line:
        """Return a new line."""
        line = Line(name, required)
        self._lines.append(line)
        return line

    @property
    def complete(self) -> bool:
        """Whether everything was read once that the service cannot do without."""
        return self._complete.is_set()

    @property
    def why_incomplete(self) -> str:
        """What is in the way of that, by the first line that it is with; "" once it is so."""
        if self.complete:
            return ""
        return next((line.state for line in self._lines if not line.enough), "")

    async def wait(self) -> None:
        """Wait until that is so."""
        await self._complete.wait()

    @property
    def connected(self) -> bool:
        """Whether everything is watched now."""
        return all(line.trouble is None for line in self._lines)

    @property
    def age(self) -> float:
        """The seconds since the last word about what has been silent for longest."""
        now = time.monotonic()
        return max((now - line.heard for line in self._lines), default=0.0)

    def good(self, line: Line) -> None:
        """Note that a collection is watched; the log is told once everything is again."""
        before, line.trouble = line.trouble, None
        line.complete, line.refused = True, False
        line.hear()
        self._look()
        if before not in (None, _NOT_READ) and not any(
            one.trouble and not one.refused for one in self._lines
        ):
            logger.info("the API server answers again, and is followed")

    def bad(self, line: Line, trouble: str, refusal: int | None = None) -> None:
        """Note that a collection cannot be read or watched; a trouble that many have is logged once.

        `refusal` is the status of an answer that says no, and will again.
        """
        known = {one.trouble for one in self._lines}
        line.trouble, line.refused = trouble, refusal is not None
        self._look()
        if trouble not in known:
            cure = self._cures.get(refusal or 0, "")
            stays = "what is known stays in force" if line.complete else "nothing of it is known yet"
            logger.warning("%s; %s", "; ".join(filter(None, (line.state, cure))), stays)

    def _look(self) -> None:
        if all(line.enough for line in self._lines):
            self._complete.set()
