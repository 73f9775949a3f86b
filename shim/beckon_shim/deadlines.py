"""The time of a call: caller's preference, event's expiry, our limit."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadlines:
    """The default and the longest time of calls, in seconds."""

    default: float
    longest: float

    def seconds(self, preferred: float | None, expires: float | None, now: float) -> float:
        """Return how long to wait; `expires` and `now` are seconds since the epoch."""
        seconds = self.default if preferred is None else preferred
        if expires is not None:
            left = max(0.0, expires - now)
            seconds = left if preferred is None else min(seconds, left)
        return min(seconds, self.longest)
