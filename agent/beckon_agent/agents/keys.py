"""Model keys from Secrets, re-read so a new key needs no restart.

On a laptop, Secrets are files, laid out as Kubernetes mounts Secrets.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from beckon_contract.resources.agent_resource import SecretKey

logger = logging.getLogger(__name__)

_SOON = 2.0  # seconds; a server that refuses a key must not make us ask for its Secret all the time
_JITTER = (0.8, 1.2)


class NoSecret(Exception):
    """A Secret cannot be read until its configuration changes.

    `reason` is for a condition; the message says what to do.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class NoAnswer(Exception):
    """A Secret cannot be looked up at the moment."""


@dataclass(frozen=True, slots=True)
class SecretEntry:
    """A key in a Secret of a namespace."""

    namespace: str
    secret: SecretKey

    def __str__(self) -> str:
        """Return its name for messages."""
        return f"key {self.secret.key!r} of Secret {self.namespace}/{self.secret.name}"


ReadSecret = Callable[[SecretEntry], Awaitable[Mapping[str, bytes]]]
"""Returns the entries of the Secret that a key is in; raises `NoSecret`, or `NoAnswer` for now."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key from a Secret."""

    value: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class NoModel:
    """The reason for an agent without a model, such as a missing key.

    `reason` is for a condition; `message` says what to do.
    """

    reason: str
    message: str


class KeyRing:
    """The last result for each key named by an Agent.

    `wanted` returns these keys; `changed` is called with each key of a new result. `period` is in
    seconds.
    """

    def __init__(
        self,
        read: ReadSecret,
        wanted: Callable[[], Collection[SecretEntry]],
        changed: Callable[[SecretEntry], None],
        period: float,
    ) -> None:
        self._read = read
        self._wanted = wanted
        self._changed = changed
        self._period = period
        self._known: dict[SecretEntry, Key | NoModel] = {}
        self._wake = asyncio.Event()

    def find_key(self, wanted: SecretEntry) -> Key | NoModel | None:
        """Return the last result for a key. `None` if there is none yet; the key is then read soon."""
        known = self._known.get(wanted)
        if known is None:
            self.read_soon()
        return known

    def read_soon(self) -> None:
        """Read all keys again soon, without waiting for the period."""
        self._wake.set()

    async def read_periodically(self) -> None:
        """Read the keys periodically until cancelled."""
        while True:
            self._wake.clear()
            await self._read_all()
            # Not at once after the last time, however many callers wait.
            await asyncio.sleep(min(_SOON, self._period))
            pause = self._period * random.uniform(*_JITTER)  # noqa: S311  # jitter is no secret
            try:
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _read_all(self) -> None:
        wanted = set(self._wanted())
        self._known = {one: key for one, key in self._known.items() if one in wanted}
        for one in sorted(wanted, key=str):
            try:
                key = await self._read_key(one)
            except Exception:
                logger.exception("reading the %s failed", one)
                continue
            if key is None and one not in self._known:
                self._wake.set()  # a caller waits for it
            elif key is not None and key != self._known.get(one):
                self._known[one] = key
                self._changed(one)

    async def _read_key(self, wanted: SecretEntry) -> Key | NoModel | None:
        """Read a key; return `None` if there is no answer now."""
        name, key = wanted.secret.name, wanted.secret.key
        try:
            entries = await self._read(wanted)
        except NoAnswer:
            return None
        except NoSecret as error:
            return NoModel(error.reason, str(error))
        if key not in entries:
            message = f"the Secret {name} has no key {key!r}; add it, or set spec.model.apiKeySecret.key"
            return NoModel("SecretKeyNotFound", message)
        text = entries[key].decode(errors="replace").strip()
        if not text:
            return NoModel(
                "SecretKeyNotFound", f"the key {key!r} of the Secret {name} is empty; put the key there"
            )
        return Key(text)


_MAX_BYTES = 1024 * 1024  # of a Secret, in Kubernetes


class SecretFiles:
    """Reads the entry `KEY` of the Secret `NAME` from `FOLDER/NAME/KEY`. All namespaces share the folder."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    async def read(self, wanted: SecretEntry) -> Mapping[str, bytes]:
        """Return the requested entry; raise `NoSecret` if it cannot be read."""
        name, key = wanted.secret.name, wanted.secret.key
        if self._folder is None:
            message = f"set BECKON_SECRETS to a folder that has the key in the file {name}/{key}"
            raise NoSecret("SecretNotFound", message)
        path = self._folder / name / key
        try:
            return {key: await asyncio.to_thread(_read_content, path)}
        except FileNotFoundError:
            raise NoSecret("SecretNotFound", f"there is no file {path}; write the key there") from None
        except OSError as error:
            raise NoSecret("SecretForbidden", f"{path} cannot be read: {error.strerror}") from None


def _read_content(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MAX_BYTES)
