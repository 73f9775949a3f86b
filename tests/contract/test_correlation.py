import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beckon_contract.correlation import (
    MAX_TOKEN,
    Claim,
    Keyring,
    SigningKey,
    check_replica,
    is_of_call,
    mint,
    verify,
)

OLD, NEW = SigningKey(b"o" * 32), SigningKey(b"n" * 32)
RING = Keyring([NEW])
REPLICAS = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True)


@given(REPLICAS)
def test_a_token_names_its_replica_and_fits_a_header(replica: str) -> None:
    token = mint(RING, check_replica(replica))
    claim = verify(RING, token)
    assert claim is not None
    assert claim.replica == replica
    assert claim == Claim(replica, token.split(".")[1])
    assert re.fullmatch(r"[A-Za-z0-9._-]+", token)
    assert len(token) == len(replica) + 40
    assert len(token) <= MAX_TOKEN


def test_every_token_is_another() -> None:
    assert len({mint(RING, "shim-0") for _ in range(2000)}) == 2000


@given(st.integers(min_value=0), st.integers(0, 7))
def test_any_flipped_bit_is_rejected(place: int, bit: int) -> None:
    token = bytearray(mint(RING, "shim-0").encode())
    token[place % len(token)] ^= 1 << bit
    assert verify(RING, token.decode("latin-1")) is None


@given(st.integers(min_value=0), st.characters())
def test_any_changed_added_or_lost_character_is_rejected(place: int, character: str) -> None:
    token = mint(RING, "shim-0")
    at = place % len(token)
    assert verify(RING, token[:at] + token[at + 1 :]) is None
    assert verify(RING, token[:at] + character + token[at:]) is None
    changed = token[:at] + character + token[at + 1 :]
    assert changed == token or verify(RING, changed) is None


@given(st.text() | st.from_regex(r"[a-z0-9-]{1,63}\.[A-Za-z0-9_-]{16}\.[A-Za-z0-9_-]{22}", fullmatch=True))
def test_any_other_text_is_rejected_and_never_raises(text: str) -> None:
    assert verify(RING, text) is None


@pytest.mark.parametrize("tail", ["\n", " ", "="])
def test_a_token_has_one_spelling_only(tail: str) -> None:
    token = mint(RING, "shim-0")
    assert verify(RING, token + tail) is None
    last = token[-1]
    others = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" if c != last]
    assert all(verify(RING, token[:-1] + other) is None for other in others)


def test_keys_rotate_without_losing_a_token() -> None:
    token = mint(Keyring([OLD]), "a")
    for keys in ([OLD], [OLD, NEW], [NEW, OLD]):
        assert verify(Keyring(keys), token) is not None
    assert verify(Keyring([NEW]), token) is None
    assert verify(Keyring([NEW]), mint(Keyring([NEW, OLD]), "a")) is not None
    assert verify(Keyring([OLD]), mint(Keyring([NEW, OLD]), "a")) is None


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_a_token_belongs_to_the_call_that_it_was_minted_for(call: bytes, other: bytes) -> None:
    token = mint(Keyring([OLD]), "a", call)
    claim = verify(Keyring([NEW, OLD]), token)
    assert claim is not None
    assert is_of_call(Keyring([NEW, OLD]), claim, call)
    assert is_of_call(Keyring([NEW, OLD]), claim, other) == (call == other)
    assert not is_of_call(RING, claim, call)


@pytest.mark.parametrize(
    "text",
    [
        "00" * 16,
        "AB" * 32,
        "ABEiM0RVZneImaq7zN3u/w==",
        "ABEiM0RVZneImaq7zN3u_w",
        "  ABEiM0RVZneImaq7zN3u/w  \n",
    ],
)
def test_keys_are_written_in_hexadecimal_or_base64(text: str) -> None:
    assert len(SigningKey.parse(text).secret) >= 16


@pytest.mark.parametrize(
    "text", ["", "00" * 15, "secret", "pässwörter-sind-lang-genug-hier", "ABEiM0RV/_neImaq7zN3uw=="]
)
def test_a_weak_or_garbled_key_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(ValueError, match="openssl rand") as refusal:
        SigningKey.parse(text)
    assert not text or text not in str(refusal.value)


def test_a_key_is_not_shown_and_a_ring_is_not_empty() -> None:
    assert "nnnn" not in repr(RING)
    assert SigningKey.random() != SigningKey.random()
    with pytest.raises(ValueError, match="at least one"):
        Keyring([])


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a.b", "a" * 64, "a\n", "ü"])
def test_a_replica_is_a_dns_label(name: str) -> None:
    with pytest.raises(ValueError, match="DNS label"):
        check_replica(name)
