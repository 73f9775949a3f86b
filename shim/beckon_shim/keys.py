"""The source of the keys: settings, a mounted file, or a random key.

The file may change while the shim runs.
"""

import asyncio
import logging
from pathlib import Path

from beckon_contract.correlation import Keyring, SigningKey
from beckon_shim.tokens import Tokens

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
    """Load new keys from the file after each change.

    The old ones stay in use while the file is unusable.
    """
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
