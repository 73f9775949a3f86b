"""Which addresses are this machine, and which can be trusted."""

import ipaddress
from urllib.parse import urlsplit


def secure_url(url: str) -> str:
    """Return an address whose answers can be trusted, https or this machine; else raise `ValueError`."""
    parts = urlsplit(url)
    host = parts.hostname
    if host and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))):
        return url
    raise ValueError(f"{url[:200]!r} must begin with https:// and a host, since keys come from there")


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"
