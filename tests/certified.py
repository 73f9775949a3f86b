"""Certificates in folders, as Kubernetes mounts Secrets of the type `kubernetes.io/tls`."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import trustme


@dataclass(frozen=True)
class Certified:
    """A folder with a certificate for this machine, and the authority that signed it."""

    folder: Path
    authority: trustme.CA

    @classmethod
    def issue(cls, folder: Path) -> Self:
        """Write a certificate of a new authority."""
        issued = cls(folder, trustme.CA())
        issued.renew()
        return issued

    @property
    def trust(self) -> ssl.SSLContext:
        """A client's context that trusts the authority."""
        context = ssl.create_default_context()
        self.authority.configure_trust(context)
        return context

    def renew(self) -> None:
        """Replace the certificate and its key by new ones."""
        leaf = self.authority.issue_cert("127.0.0.1", "localhost")
        self.replace("tls.crt", b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
        self.replace("tls.key", leaf.private_key_pem.bytes())

    def replace(self, name: str, content: bytes) -> None:
        """Put a new file in the place of the old one."""
        new = self.folder / f"{name}.new"
        new.write_bytes(content)
        new.replace(self.folder / name)
