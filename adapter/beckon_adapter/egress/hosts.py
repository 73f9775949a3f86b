"""The hosts allowed by the adapter's owner."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, field_validator

SETTING = "BECKON_ADAPTER_ALLOWED_HOSTS"

_PORTS = {"https": 443, "http": 80}
_PATTERN = re.compile(
    r"((?P<scheme>https?)://)?(?P<host>(\*\.)?[a-z0-9_]([a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:(?P<port>[0-9]{1,5}))?/?"
)


class NotAllowed(Exception):
    """A host not allowed for the adapter; the message names the setting.

    The owner can allow the host there.
    """


class AllowedHost(BaseModel):
    """One entry of the setting.

    `host` is a name such as `api.example.com`, `*.example.com` for every name below it, or an origin
    such as `http://shop.default.svc.cluster.local:8080`. `private` lets it be on a private network;
    `connect` (ADDRESS:PORT) is where to connect to instead of what its name resolves to.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str
    private: bool = False
    connect: str = Field("", pattern=r"^([0-9a-fA-F.]+|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}$|^$")

    @field_validator("host")
    @classmethod
    def _is_pattern(cls, value: str) -> str:
        _Pattern.from_text(value)
        return value

    def matches(self, scheme: str, host: str, port: int) -> bool:
        """Return True if this entry is for an origin."""
        return _Pattern.from_text(self.host).matches(scheme, host, port)


@dataclass(frozen=True, slots=True)
class _Pattern:
    scheme: str
    host: str
    port: int

    @classmethod
    def from_text(cls, text: str) -> "_Pattern":
        """Read an entry; raise `ValueError` with the cure."""
        found = _PATTERN.fullmatch(text.lower())
        if found is None:
            raise ValueError(
                f"{text[:80]!r} is no host; write api.example.com, *.example.com, or http://host:8080"
            )
        if found["host"].startswith("*.") and "." not in found["host"][2:]:
            raise ValueError(f"{text[:80]!r} would allow all of a top-level domain; name a domain below it")
        scheme = found["scheme"] or "https"
        return cls(scheme, found["host"], int(found["port"] or _PORTS[scheme]))

    def matches(self, scheme: str, host: str, port: int) -> bool:
        host = host.lower().removesuffix(".")
        if (scheme, port) != (self.scheme, self.port):
            return False
        if self.host.startswith("*."):
            return host.endswith(self.host[1:]) and len(host) > len(self.host) - 1
        return host == self.host.strip("[]")


class AllowedHosts:
    """All entries; the first one for an origin decides.

    `services` are the Services that a laptop runs itself. They change with time; a cluster has none.
    """

    def __init__(self, entries: Iterable[AllowedHost] = ()) -> None:
        self._entries = tuple(entries)
        self.services: tuple[AllowedHost, ...] = ()

    def find(self, scheme: str, host: str, port: int | None) -> AllowedHost:
        """Return the entry for an origin; raise `NotAllowed`."""
        number = port or _PORTS.get(scheme, 0)
        for entry in (*self._entries, *self.services):
            if entry.matches(scheme, host.strip("[]"), number):
                return entry
        origin = host if (scheme, number) == ("https", 443) else f"{scheme}://{host}:{number}"
        raise NotAllowed(f"the HTTP adapter may not call {origin}: its owner has not allowed it ({SETTING})")

    def reached_at(self, host: str, port: int) -> Iterator[AllowedHost]:
        """Yield the entries for a host and port, of any scheme."""
        for entry in (*self._entries, *self.services):
            if any(entry.matches(scheme, host, port) for scheme in _PORTS):
                yield entry
