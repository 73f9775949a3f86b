"""Ids of tool calls: nine letters and digits, accepted by every provider.

Mistral refuses any other form; the rest accept any unique id. One exception: LiteLLM hides Gemini's thought
signature in the id, and wants it back unchanged.
"""

import hashlib
import re
import secrets
import string
from collections.abc import Container

_ALPHABET = string.digits + string.ascii_letters
_LENGTH = 9
_SHORT = re.compile(r"[a-zA-Z0-9]{9}\Z")
_SIGNED = "__thought__"


def call_id(taken: Container[str] = ()) -> str:
    """Return a new random id, different from those taken."""
    while True:
        candidate = "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))
        if candidate not in taken:
            return candidate


def derived_id(seed: str, taken: Container[str]) -> str:
    """Return the same id for the same seed, past those taken."""
    attempt = 0
    while True:
        number = int.from_bytes(hashlib.sha256(f"{attempt}:{seed}".encode()).digest())
        letters = []
        for _ in range(_LENGTH):
            number, rest = divmod(number, len(_ALPHABET))
            letters.append(_ALPHABET[rest])
        candidate = "".join(letters)
        if candidate not in taken:
            return candidate
        attempt += 1


def may_stay(wire_id: str, *, signed: bool = True) -> bool:
    """True if an id can be used unchanged.

    With `signed`, an id with a thought signature can be used as well.
    """
    return _SHORT.match(wire_id) is not None or (signed and _SIGNED in wire_id)
