"""Which addresses can be trusted."""

from urllib.parse import urlsplit

from beckon_contract.origins import is_loopback


def secure_url(url: str) -> str:
    """Return an address whose answers can be trusted, https or this machine; else raise `ValueError`."""
    parts = urlsplit(url)
    host = parts.hostname
    if host and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))):
        return url
    raise ValueError(f"{url[:200]!r} must begin with https:// and a host, since keys come from there")
