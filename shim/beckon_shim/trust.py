"""Whom TLS connections trust."""

import ssl
from functools import lru_cache


@lru_cache(maxsize=64)
def trusting(ca_certs: str) -> ssl.SSLContext:
    """Return a context that verifies names and certificates against the system's and these PEM certificates.

    Raises `OSError` or `ValueError` for certificates that cannot be read. Kept, since reading the
    system's store takes milliseconds in which no call goes on.
    """
    context = ssl.create_default_context()
    if ca_certs:
        context.load_verify_locations(cadata=ca_certs)
    return context
