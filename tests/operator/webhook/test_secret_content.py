from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from beckon_operator.webhook.certificates import (
    CertificateSet,
    RetiredAuthority,
    UnusableCertificates,
    new_authority,
    new_serving,
    read_certificate_set,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
AUTHORITY = new_authority(100 * DAY, NOW)
SERVING = new_serving(AUTHORITY, {"a.b.svc"}, 10 * DAY, NOW)
HELD = CertificateSet(AUTHORITY, SERVING)
FULL = CertificateSet(
    AUTHORITY,
    SERVING,
    upcoming=new_authority(100 * DAY, NOW),
    retired=RetiredAuthority(new_authority(100 * DAY, NOW).certificate, SERVING.certificate),
)


@pytest.mark.parametrize("held", [HELD, FULL, replace(FULL, upcoming=None), replace(FULL, retired=None)])
def test_what_is_written_is_read_again(held: CertificateSet) -> None:
    found = read_certificate_set(held.to_secret())

    assert found is not None
    assert found.to_secret() == held.to_secret()
    assert found.trust_bundle() == held.trust_bundle()


def test_a_secret_has_the_keys_that_tls_secrets_have() -> None:
    assert set(HELD.to_secret()) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}
    assert set(FULL.to_secret()) - set(HELD.to_secret()) == {
        "next-ca.crt",
        "next-ca.key",
        "old-ca.crt",
        "old-tls.crt",
    }


def test_an_empty_secret_holds_nothing() -> None:
    assert read_certificate_set({}) is None


@pytest.mark.parametrize("name", sorted(FULL.to_secret()))
@pytest.mark.parametrize("value", [b"", b"-----BEGIN CERTIFICATE-----\n", b"\xff"])
def test_a_broken_key_is_named_and_never_shown(name: str, value: bytes) -> None:
    with pytest.raises(UnusableCertificates) as caught:
        read_certificate_set({**FULL.to_secret(), name: value})

    assert name.partition(".")[0] in str(caught.value)
    assert "BEGIN" not in str(caught.value)


@pytest.mark.parametrize("name", sorted(FULL.to_secret()))
def test_a_missing_key_is_reported(name: str) -> None:
    data = FULL.to_secret()
    del data[name]
    if name == "old-ca.crt":  # without it nothing is retired
        assert read_certificate_set(data) is not None
        return

    with pytest.raises(UnusableCertificates):
        read_certificate_set(data)


def rsa_key() -> bytes:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def other_authority() -> dict[str, bytes]:
    other = new_authority(DAY, NOW)
    return {"ca.crt": other.certificate_pem, "ca.key": other.key_pem}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda: {"tls.key": AUTHORITY.key_pem}, "key of another certificate"),
        (lambda: {"tls.key": rsa_key()}, "elliptic curve"),
        (other_authority, "not signed by"),
    ],
)
def test_parts_of_different_pairs_are_refused(change: Callable[[], dict[str, bytes]], why: str) -> None:
    with pytest.raises(UnusableCertificates, match=why):
        read_certificate_set({**HELD.to_secret(), **change()})
