"""The keys, and the tokens of this replica: minted for its calls, verified on every reply."""

import asyncio
import logging
from pathlib import Path

from beckon_contract.correlation import Claim, Keyring, SigningKey, check_replica, mint, sign_claim, verify


class Tokens:
    """Mints and verifies tokens with the current keys. `rotate` replaces the keys while the shim runs."""

    def __init__(self, keyring: Keyring, replica: str) -> None:
        self.replica = check_replica(replica)
        self._keyring = keyring

    @property
    def keyring(self) -> Keyring:
        """The current keys."""
        return self._keyring

    def mint(self, call_id: bytes) -> tuple[str, str]:
        """Return a new token for a call, and the nonce in it."""
        token = mint(self._keyring, self.replica, call_id)
        return token, token.split(".", maxsplit=2)[1]

    def write(self, claim: Claim) -> bytes:
        """Return the token with a claim that was verified before."""
        return sign_claim(self._keyring, claim).encode()

    def verify(self, value: bytes | None) -> Claim | None:
        """Return the claim in a header's value, `None` without a valid token."""
        return None if value is None else verify(self._keyring, value.decode("latin-1"))

    def rotate(self, keyring: Keyring) -> None:
        """Use other keys from now on."""
        self._keyring = keyring


_LOOK_SECONDS = 10.0

logger = logging.getLogger(__name__)


def load_keys(text: str, path: Path | None) -> Keyring:
    """Return the keys in force at the start.

    Raises `ValueError` for bad ones, `OSError` for a file that cannot be read.
    """
    if path is not None:
        return Keyring.parse(path.read_text())
    if text:
        return Keyring.parse(text)
    logger.warning("no keys are set: a random one is used, which serves one replica until it restarts")
    return Keyring([SigningKey.random()])


async def follow_keys(path: Path, tokens: Tokens, seconds: float = _LOOK_SECONDS) -> None:
    """Load new keys from the file after each change. The old ones stay in use while the file is unusable."""
    seen = ""
    while True:
        try:
            text = await asyncio.to_thread(path.read_text)
            if text != seen:
                tokens.rotate(Keyring.parse(text))
                seen = text
                logger.info("the keys in %s are in force", path)
        except (OSError, ValueError) as error:
            logger.warning("the keys in %s cannot be used, the old ones stay: %s", path, error)
        await asyncio.sleep(seconds)
