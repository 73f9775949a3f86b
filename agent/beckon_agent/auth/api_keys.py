"""The file of API keys, such as a mounted Secret, re-read when it changes."""

import logging
import os
import stat
import time
from datetime import UTC, datetime
from pathlib import Path

from beckon_contract.api_keys import KeyEntry, hash_of, read_lines

logger = logging.getLogger(__name__)

_MAX_BYTES = 4 * 1024 * 1024  # a Secret holds 1 MiB

_State = tuple[int, int, int]


class KeyFile:
    """The API keys of a file.

    If it cannot be read, no key is valid. A look-up checks first if the file has changed, at most once in
    `every` seconds: a removed key is refused from then on.
    """

    def __init__(self, path: Path, every: float = 1.0) -> None:
        self._path = path
        self._every = every
        self._entries: dict[str, list[KeyEntry]] = {}
        self._state: _State | None = None
        self._look_at = 0.0
        self._logged = ""

    def find_key(self, key: str) -> KeyEntry | None:
        """Return the entry of a key, `None` if unknown or expired."""
        self._refresh_keys()
        now = datetime.now(UTC)
        valid = (entry for entry in self._entries.get(hash_of(key), ()) if not entry.expired(now))
        return next(valid, None)

    def _refresh_keys(self) -> None:
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + self._every
        try:
            found = self._path.stat()  # of what the link points to: the kubelet swaps the link
            state = found.st_mtime_ns, found.st_size, found.st_ino
            if state == self._state:
                return
            self._read_file(found)
            self._state = state
        except (OSError, ValueError) as error:
            self._entries, self._state = {}, None
            reason = error.strerror if isinstance(error, OSError) else str(error)
            self._log_once(f"the API keys in {self._path} cannot be read, so none is valid: {reason}")

    def _read_file(self, found: os.stat_result) -> None:
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MAX_BYTES:
            raise ValueError(f"it is no file of at most {_MAX_BYTES} bytes")
        entries, bad = read_lines(self._path.read_bytes().decode())
        by_digest: dict[str, list[KeyEntry]] = {}
        for entry in entries:
            by_digest.setdefault(entry.hash, []).append(entry)
        self._entries, self._logged = by_digest, ""
        logger.info("read %d API keys from %s", len(entries), self._path)
        for line in bad:
            logger.error("%s line %d is no valid key: %s", self._path, line.number, line.message)

    def _log_once(self, message: str) -> None:
        """Log a problem once, not with every request."""
        if message != self._logged:
            logger.error("%s", message)
            self._logged = message
