"""The content of the Secret: authorities and the server's certificate.

It is converted to and from the keys of the Secret.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from cryptography import x509

from beckon_operator.webhook.certificates import (
    CertificatePair,
    UnusableCertificates,
    is_signed_by,
    read_certificate,
    read_pair,
    to_pem,
)

_CURRENT = ("ca.crt", "ca.key")
_NEXT = ("next-ca.crt", "next-ca.key")
_OLD = ("old-ca.crt", "old-tls.crt")
_SERVING = ("tls.crt", "tls.key")


@dataclass(frozen=True, slots=True)
class Retired:
    """A retired authority, and its last certificate for the server."""

    authority: x509.Certificate
    last_signed: x509.Certificate


@dataclass(frozen=True, slots=True)
class CertificateSet:
    """The signing authority and the server's certificate.

    `upcoming` is the next authority to sign, `retired` the previous one.
    """

    authority: CertificatePair
    serving: CertificatePair
    upcoming: CertificatePair | None = None
    retired: Retired | None = None

    def trust_bundle(self) -> bytes:
        """Return the bundle for the API server to trust, as PEM."""
        found = [self.authority.certificate]
        if self.upcoming is not None:
            found.append(self.upcoming.certificate)
        if self.retired is not None:
            found.append(self.retired.authority)
        return b"".join(to_pem(one) for one in found)

    def to_secret(self) -> dict[str, bytes]:
        """Return the data of the Secret."""
        pairs = {_CURRENT: self.authority, _SERVING: self.serving, _NEXT: self.upcoming}
        data: dict[str, bytes] = {}
        for (certificate, key), pair in pairs.items():
            if pair is not None:
                data |= {certificate: pair.certificate_pem, key: pair.key_pem}
        if self.retired is not None:
            data[_OLD[0]] = to_pem(self.retired.authority)
            data[_OLD[1]] = to_pem(self.retired.last_signed)
        return data


def read_certificate_set(data: Mapping[str, bytes]) -> CertificateSet | None:
    """Read the data of the Secret, `None` if it is empty.

    Raises `Unusable` for anything broken.
    """
    if not data:
        return None
    authority, serving = _read_pair(data, _CURRENT), _read_pair(data, _SERVING)
    if not is_signed_by(serving.certificate, authority.certificate):
        raise UnusableCertificates(f"{_SERVING[0]} is not signed by {_CURRENT[0]}")
    upcoming = _read_pair(data, _NEXT) if any(name in data for name in _NEXT) else None
    retired = Retired(*(_read_entry(data, name) for name in _OLD)) if _OLD[0] in data else None
    return CertificateSet(authority, serving, upcoming, retired)


def _read_pair(data: Mapping[str, bytes], names: tuple[str, str]) -> CertificatePair:
    try:
        return read_pair(*(_entry_of(data, name) for name in names))
    except UnusableCertificates as error:
        raise UnusableCertificates(f"{names[0]} {error}") from None


def _read_entry(data: Mapping[str, bytes], name: str) -> x509.Certificate:
    try:
        return read_certificate(_entry_of(data, name))
    except UnusableCertificates as error:
        raise UnusableCertificates(f"{name} {error}") from None


def _entry_of(data: Mapping[str, bytes], name: str) -> bytes:
    return data.get(name, b"")
