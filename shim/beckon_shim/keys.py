"""Where the keys come from: the settings, a mounted file that may change, or chance."""

import asyncio
import logging
import re
from pathlib import Path

from beckon_contract.correlation import Key, Keyring
from beckon_shim.tokens import Tokens

_LOOK_SECONDS = 10.0
_MOST_KEYS = 8

logger = logging.getLogger(__name__)


def parse_keys(text: str) -> Keyring:
    """Read keys separated by commas or lines; raise `ValueError` that never holds a key."""
    keys = [Key.parse(part) for part in re.split(r"[,\s]+", text) if part]
    if len(keys) > _MOST_KEYS:
        raise ValueError(f"there are {len(keys)} keys; at most {_MOST_KEYS} may be in force")
    return Keyring(keys)


def load_keys(text: str, path: Path | None) -> Keyring:
    """Return the keys in force at the start.

    Raises `ValueError` for bad ones, `OSError` for a file that cannot be read.
    """
    if path is not None:
        return parse_keys(path.read_text())
    if text:
        return parse_keys(text)
    logger.warning("no keys are set: a random one is used, which serves one replica until it restarts")
    return Keyring([Key.random()])


async def follow_keys(path: Path, tokens: Tokens, seconds: float = _LOOK_SECONDS) -> None:
    """Take new keys from the file whenever it changes; keep the old ones while it is unusable."""
    seen = ""
    while True:
        try:
            text = await asyncio.to_thread(path.read_text)
            if text != seen:
                tokens.rotate(parse_keys(text))
                seen = text
                logger.info("the keys in %s are in force", path)
        except (OSError, ValueError) as error:
            logger.warning("the keys in %s cannot be used, the old ones stay: %s", path, error)
        await asyncio.sleep(seconds)
