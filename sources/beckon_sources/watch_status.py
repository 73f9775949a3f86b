"""The state of the API server for the log, the metrics and `/readyz`."""

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

logger = logging.getLogger(__name__)

_NOT_READ = "not read yet"


@dataclass(slots=True)
class Line:
    """The state of one watched collection.

    `complete` is true once it has been read, `trouble` is `None` while it is watched, and `last_message` is
    the time of the last message. If it is not `required`, the service is ready even if the API server refuses
    it: a namespace that was deleted with its roles must not keep all others from their agents.
    """

    name: str
    required: bool = True
    complete: bool = False
    refused: bool = False
    trouble: str | None = _NOT_READ
    last_message: float = field(default_factory=time.monotonic)

    @property
    def enough(self) -> bool:
        """True if this collection lets the service be ready."""
        return self.complete or (self.refused and not self.required)

    @property
    def state(self) -> str:
        """The problem of the collection in words; "" without one."""
        if self.trouble == _NOT_READ:
            return "the API server has not answered yet"
        return f"cannot follow {self.name}: {self.trouble}" if self.trouble else ""

    def note_message(self) -> None:
        """Note the time of a message from the API server about it."""
        self.last_message = time.monotonic()


class Contact:
    """The lines to the API server, all of them together."""

    def __init__(self, cures: Mapping[int, str]) -> None:
        """Take the remedies to log with a refusal, by HTTP status."""
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
        """True once all collections needed by the service have been read."""
        return self._complete.is_set()

    @property
    def why_incomplete(self) -> str:
        """The problem of the first collection still missing; "" if complete."""
        if self.complete:
            return ""
        return next((line.state for line in self._lines if not line.enough), "")

    @property
    def refusal(self) -> str:
        """The problem of the first collection that the API server refuses; "" if it refuses none."""
        return next((line.state for line in self._lines if line.refused), "")

    async def wait(self) -> None:
        """Wait until all needed collections have been read."""
        await self._complete.wait()

    @property
    def connected(self) -> bool:
        """True if all collections are watched now."""
        return all(line.trouble is None for line in self._lines)

    @property
    def age(self) -> float:
        """The longest silence about a collection, in seconds."""
        now = time.monotonic()
        return max((now - line.last_message for line in self._lines), default=0.0)

    def note_working(self, line: Line) -> None:
        """Note a working watch, and log the end of all trouble."""
        before, line.trouble = line.trouble, None
        line.complete, line.refused = True, False
        line.note_message()
        self._look()
        if before not in (None, _NOT_READ) and not any(
            one.trouble and not one.refused for one in self._lines
        ):
            logger.info("the API server answers again, and is followed")

    def note_trouble(self, line: Line, trouble: str, refusal: int | None = None) -> None:
        """Note the failure to read or watch a collection.

        The same trouble of several collections is logged once. `refusal` is the HTTP status of an error that
        will not pass by itself.
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
