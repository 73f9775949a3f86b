"""The keys of the shim: they sign calls and authenticate late replies."""

import logging
import time
from collections.abc import Iterable
from pathlib import Path

from beckon_contract.correlation import Keyring, RawHeader, is_of_call, sign_request, verify

logger = logging.getLogger(__name__)


class ReplyKeys:
    """The keys in force, from a text or from a file.

    The file is read again when it changes.
    """

    def __init__(self, text: str = "", path: Path | None = None) -> None:
        """Read the keys; raise `ValueError` for a bad one, without showing it.

        Raises `OSError` for an unreadable file.
        """
        self._path = path
        self._state: tuple[int, int, int] | None = None
        self._ring = Keyring.parse(text) if text else None
        if path is not None:
            self._read_keys(path)

    def __bool__(self) -> bool:
        """True if there are keys at all."""
        return self._ring is not None

    def is_proven(self, token: str, call_id: str) -> bool:
        """True if a token was given to the receiver of this call."""
        self._refresh_keys()
        claim = verify(self._ring, token) if self._ring is not None else None
        return (
            self._ring is not None and claim is not None and is_of_call(self._ring, claim, call_id.encode())
        )

    def sign_call(self, path: str, headers: Iterable[RawHeader], body: bytes) -> str | None:
        """Return the `authorization` header of a call to the shim, `None` without keys."""
        self._refresh_keys()
        return None if self._ring is None else sign_request(self._ring, path, headers, body, time.time())

    def _refresh_keys(self) -> None:
        if self._path is None:
            return
        try:
            self._read_keys(self._path)
        except (OSError, ValueError) as error:
            logger.warning("the keys in %s cannot be used, the old ones stay: %s", self._path, error)

    def _read_keys(self, path: Path) -> None:
        found = path.stat()  # of what the link points to: the kubelet swaps the link
        state = found.st_mtime_ns, found.st_size, found.st_ino
        if state != self._state:
            self._ring = Keyring.parse(path.read_text())
            self._state = state
