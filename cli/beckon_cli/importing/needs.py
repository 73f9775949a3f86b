"""The adapter settings required before imported tools can be called."""

import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from rich.text import Text

from beckon_cli.importing.candidates import Found, Tool
from beckon_cli.importing.credential import Part


def required_settings(found: Found[Tool]) -> Iterator[Text]:
    """Yield the adapter settings required by the imported tools.

    The adapter's owner must set them before any of the tools can be called.
    """
    allowed = hosts_of(found)
    if not allowed:
        return
    yield Text("the adapter's owner sets:")
    yield Text(f"BECKON_ADAPTER_ALLOWED_HOSTS={_allowed_hosts(allowed)}")
    needed = credential_parts(found)
    if not needed:
        return
    entries = ", ".join(
        _credential_entry(found, name, part, _secret_file(name, part if len(parts) > 1 else None))
        for name, parts in needed.items()
        for part in parts or [Part("bearer")]
    )
    yield Text(f"BECKON_ADAPTER_CREDENTIALS='[{entries}]'")
    for name, parts in needed.items():
        if len(parts) != 1 or parts[0].kind == "cookie":
            wanted = " and ".join(map(str, parts)) or "what the import was not told"
            yield Text(f"  where {name} must send {wanted}")


def hosts_of(found: Found[Tool]) -> list[str]:
    """Return the hosts of the tools' URLs, as the adapter expects them.

    A host has a scheme unless it is https.
    """
    return sorted({_host_of(each.url) for each in found.tools if each.url})


def _allowed_hosts(hosts: list[str]) -> str:
    """Return the adapter's setting for the allowed hosts.

    It is a list with commas. If any host is on a private network it is YAML, with these hosts marked.
    """
    if not any(map(_is_private, hosts)):
        return ",".join(hosts)
    entries = [f"{{host: '{host}'{', private: true' if _is_private(host) else ''}}}" for host in hosts]
    return f'"[{", ".join(entries)}]"'


def _is_private(host: str) -> bool:
    """Return True for a host on this machine or a private network.

    Only its name or IP address is examined; nothing is resolved.
    """
    name = urlsplit(host if "//" in host else f"//{host}").hostname or ""
    try:
        return not ip_address(name).is_global
    except ValueError:
        return "." not in name or name.endswith((".local", ".internal", ".lan", ".svc"))


def _host_of(url: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return host if parts.scheme == "https" else f"{parts.scheme}://{host}"


def _secret_file(name: str, part: Part | None) -> str:
    """Return the file name for a secret of the adapter's owner.

    Each part of a credential has a file of its own.
    """
    suffix = re.sub(r"[^a-z0-9]+", "-", (part.name or part.kind).lower()) if part else ""
    return f"{name}-{suffix}.secret" if suffix else f"{name}.secret"


def _credential_entry(found: Found[Tool], name: str, part: Part, file: str) -> str:
    """Return one credential as the adapter's setting has it."""
    called = sorted({_host_of(each.url) for each in found.tools if each.url and each.credential.name == name})
    kind, sent = ("header", "Cookie") if part.kind == "cookie" else (part.kind, part.name)
    as_ = f", as: {sent}" if sent else ""
    return f"{{name: {name}, hosts: [{', '.join(called)}], type: {kind}{as_}, file: {file}}}"


def credential_parts(found: Found[Tool]) -> Mapping[str, list[Part]]:
    """Return the parts of each credential, by its name."""
    needed: dict[str, dict[tuple[str, str], Part]] = {}
    for each in found.tools:
        if each.credential.name:
            parts = needed.setdefault(each.credential.name, {})
            for part in each.credential.parts:
                parts.setdefault((part.kind, part.name), part)
    return {name: list(parts.values()) for name, parts in needed.items()}
