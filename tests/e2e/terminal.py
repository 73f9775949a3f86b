"""A terminal as a test sees it."""

import os
import select
import time


class Terminal:
    """What a terminal shows, read piece by piece; the rest is there for the next read."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._unread = ""

    def read_until(self, text: str, seconds: float) -> str:
        """Return what the terminal shows up to a text; fail when it does not come."""
        end = time.monotonic() + seconds
        while text not in self._unread:
            ready, _, _ = select.select([self.descriptor], [], [], max(end - time.monotonic(), 0))
            assert ready, f"no {text!r} in: {self._unread}"
            self._unread += os.read(self.descriptor, 65_536).decode(errors="replace")
        shown, _, self._unread = self._unread.partition(text)
        return shown + text

    def type(self, keys: bytes) -> None:
        """Type these keys."""
        os.write(self.descriptor, keys)
