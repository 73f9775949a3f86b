"""The certificates of an authority and a server, and their form in the Secret."""

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from beckon_runtime.origins import is_address

RENEW_AFTER = 2 / 3  # of a certificate's life
# Clocks of other machines may be a little behind; a short life leaves room for less.
_BACKDATED, _BACKDATED_PART = timedelta(hours=1), 0.01


class UnusableCertificates(ValueError):
    """A certificate or key cannot be used; the message says why and never shows a key."""


@dataclass(frozen=True, slots=True)
class CertificatePair:
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def certificate_pem(self) -> bytes:
        """The certificate as PEM."""
        return to_pem(self.certificate)

    @property
    def key_pem(self) -> bytes:
        """The private key as PEM (PKCS #8), not encrypted."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def to_pem(certificate: x509.Certificate) -> bytes:
    """Return a certificate as PEM."""
    return certificate.public_bytes(Encoding.PEM)


def read_certificate(pem: bytes) -> x509.Certificate:
    """Read one certificate; raise `UnusableCertificates`."""
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError:
        raise UnusableCertificates("is no PEM certificate") from None


def read_pair(certificate_pem: bytes, key_pem: bytes) -> CertificatePair:
    """Read a certificate and its private key.

    Raises `UnusableCertificates` if one cannot be read, or the key is that of another certificate.
    """
    certificate = read_certificate(certificate_pem)
    try:
        key = load_pem_private_key(key_pem, password=None)
    except (ValueError, TypeError):
        raise UnusableCertificates("has no readable private key") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise UnusableCertificates("has a key that is not on an elliptic curve")
    public = [
        one.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        for one in (certificate.public_key(), key.public_key())
    ]
    if public[0] != public[1]:
        raise UnusableCertificates("has the key of another certificate")
    return CertificatePair(certificate, key)


def new_authority(lifetime: timedelta, now: datetime) -> CertificatePair:
    """Make a self-signed authority with a unique name."""
    key = ec.generate_private_key(ec.SECP256R1())
    serial = x509.random_serial_number()
    # Two authorities of one name in one bundle make verifiers try the wrong one.
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"beckon-webhook authority {serial:x}"[:64])])
    usage = _key_usage(key_cert_sign=True, crl_sign=True)
    certificate = (
        _new_builder(name, name, key, serial)
        .not_valid_before(_begin_validity(lifetime, now))
        .not_valid_after(now + lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    return CertificatePair(certificate, key)


def new_serving(
    authority: CertificatePair, names: Iterable[str], lifetime: timedelta, now: datetime
) -> CertificatePair:
    """Make a server's certificate for DNS names and IP addresses. It ends no later than its authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    ordered = sorted(names)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, ordered[0][:64])])
    identifier = authority.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    certificate = (
        _new_builder(subject, authority.certificate.subject, key, x509.random_serial_number())
        .not_valid_before(_begin_validity(lifetime, now))
        .not_valid_after(min(now + lifetime, authority.certificate.not_valid_after_utc))
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in ordered]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False
        )
        .sign(authority.key, hashes.SHA256())
    )
    return CertificatePair(certificate, key)


def names_of(certificate: x509.Certificate) -> frozenset[str]:
    """Return the DNS names and IP addresses of a certificate."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    addresses = (str(address) for address in names.get_values_for_type(x509.IPAddress))
    return frozenset([*names.get_values_for_type(x509.DNSName), *addresses])


def is_signed_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    """Return True if an authority has signed a certificate."""
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def is_valid(certificate: x509.Certificate, now: datetime) -> bool:
    """Return True if a certificate is valid at a time."""
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc


def is_due(certificate: x509.Certificate, now: datetime) -> bool:
    """Return True if a certificate is due for renewal. That is after `RENEW_AFTER` of its life."""
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return now >= begin + (end - begin) * RENEW_AFTER


def _general_name(name: str) -> x509.GeneralName:
    return x509.IPAddress(ipaddress.ip_address(name)) if is_address(name) else x509.DNSName(name)


def _begin_validity(lifetime: timedelta, now: datetime) -> datetime:
    return now - min(_BACKDATED, lifetime * _BACKDATED_PART)


def _new_builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, serial: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(serial)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _key_usage(
    *, digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False
) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


_CURRENT = ("ca.crt", "ca.key")
_NEXT = ("next-ca.crt", "next-ca.key")
_OLD = ("old-ca.crt", "old-tls.crt")
_SERVING = ("tls.crt", "tls.key")


@dataclass(frozen=True, slots=True)
class RetiredAuthority:
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
    retired: RetiredAuthority | None = None

    def trust_bundle(self) -> bytes:
        """Return the bundle for the API server to trust, as PEM."""
        certificates = [self.authority.certificate]
        if self.upcoming is not None:
            certificates.append(self.upcoming.certificate)
        if self.retired is not None:
            certificates.append(self.retired.authority)
        return b"".join(to_pem(one) for one in certificates)

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
    """Read the data of the Secret, `None` if it is empty; raise `UnusableCertificates` for broken data."""
    if not data:
        return None
    authority, serving = _read_pair(data, _CURRENT), _read_pair(data, _SERVING)
    if not is_signed_by(serving.certificate, authority.certificate):
        raise UnusableCertificates(f"{_SERVING[0]} is not signed by {_CURRENT[0]}")
    upcoming = _read_pair(data, _NEXT) if any(name in data for name in _NEXT) else None
    retired = RetiredAuthority(*(_read_entry(data, name) for name in _OLD)) if _OLD[0] in data else None
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
