"""The adapter's credentials for the APIs it calls.

Their secrets are with the adapter's owner; no manifest holds one.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a credential, as sent.

    `kind` is bearer, basic, header, query or cookie.
    """

    kind: str
    name: str = ""
    hint: str = ""

    def __str__(self) -> str:
        """Return it in words."""
        if self.kind == "bearer":
            return "a bearer token in Authorization"
        if self.kind == "basic":
            return "a user and a password in Authorization"
        where = {"query": "query parameter", "cookie": "cookie"}.get(self.kind, self.kind)
        return f"the {where} {self.name}"


@dataclass(frozen=True, slots=True)
class Credential:
    """The credential of an operation; without a name, none is needed.

    `problem` says why no rule can send it.
    """

    name: str = ""
    parts: tuple[Part, ...] = ()
    problem: str = ""

    def sends(self, place: str, name: str) -> bool:
        """Return True if it sends this parameter."""
        folded = name.lower() if place == "header" else name
        return any(
            part.kind == place and (part.name.lower() if place == "header" else part.name) == folded
            for part in self.parts
        )
