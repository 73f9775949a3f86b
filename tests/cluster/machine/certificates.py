"""The cluster's keys and certificates: one authority that everybody trusts, and a certificate a part."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.cluster.machine.places import API_SERVICE_ADDRESS, NODE, NODE_ADDRESS

LIFE = datetime.timedelta(days=365)

API_NAMES = (
    "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
    "localhost", "127.0.0.1", API_SERVICE_ADDRESS, NODE_ADDRESS,
)  # fmt: skip


@dataclass(frozen=True)
class Subject:
    """Who a certificate is for; Kubernetes reads the organization as the user's group."""

    file: str
    common_name: str
    organization: str = ""
    names: tuple[str, ...] = ()


SUBJECTS = (
    Subject("etcd", "etcd", names=("localhost", "127.0.0.1")),
    Subject("apiserver", "kube-apiserver", names=API_NAMES),
    Subject("apiserver-kubelet-client", "kube-apiserver-kubelet-client", "system:masters"),
    Subject("front-proxy", "front-proxy-client"),
    Subject("controller-manager", "system:kube-controller-manager"),
    Subject("scheduler", "system:kube-scheduler"),
    Subject("proxy", "system:kube-proxy", "system:node-proxier"),
    Subject("kubelet", f"system:node:{NODE}", "system:nodes", (NODE, NODE_ADDRESS)),
    Subject("admin", "admin", "system:masters"),
)


def write(folder: Path) -> None:
    """Write `ca.crt`, a `.crt` and a `.key` a subject, and the key that signs service accounts."""
    folder.mkdir(mode=0o700, parents=True)
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = authority_certificate(authority_key)
    save(folder / "ca.crt", authority.public_bytes(serialization.Encoding.PEM))
    save(folder / "ca.key", pem(authority_key))
    for subject in SUBJECTS:
        key = ec.generate_private_key(ec.SECP256R1())
        signed = certificate(subject, key.public_key(), authority, authority_key)
        save(folder / f"{subject.file}.crt", signed.public_bytes(serialization.Encoding.PEM))
        save(folder / f"{subject.file}.key", pem(key))
    save(folder / "service-accounts.key", pem(ec.generate_private_key(ec.SECP256R1())))


def authority_certificate(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    """A self-signed certificate that may sign others."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "beckon-cluster-ca")])
    usage = x509.KeyUsage(
        digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip
    return (
        builder(name, name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def certificate(
    subject: Subject,
    key: ec.EllipticCurvePublicKey,
    authority: x509.Certificate,
    authority_key: ec.EllipticCurvePrivateKey,
) -> x509.Certificate:
    """A certificate for `subject`, good for both ends of a connection."""
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, subject.common_name)]
    if subject.organization:
        attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, subject.organization))
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    unsigned = (
        builder(x509.Name(attributes), authority.subject, key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=False)
        .add_extension(issuer, critical=False)
    )
    if subject.names:
        names = x509.SubjectAlternativeName([general_name(name) for name in subject.names])
        unsigned = unsigned.add_extension(names, critical=False)
    return unsigned.sign(authority_key, hashes.SHA256())


def builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    """What every certificate has; valid from a little earlier, for clocks that are set back."""
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + LIFE)
    )


def general_name(name: str) -> x509.GeneralName:
    """An address as an address, everything else as a DNS name."""
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A private key as the Kubernetes programs read it."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def save(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read."""
    path.touch(mode=0o600)
    path.write_bytes(content)
