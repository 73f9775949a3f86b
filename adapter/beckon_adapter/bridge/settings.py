"""The MCP servers named by the adapter's owner."""

from collections.abc import Mapping
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

SETTING = "BECKON_ADAPTER_MCP_SERVERS"
_SHORTEST = 6  # characters of a secret that is looked for; a shorter one is part of ordinary words


class NamedServer(BaseModel):
    """One entry of the setting: a server at a URL, or a command that speaks MCP over its standard streams.

    A command has the environment of `env` and nothing of the adapter's but PATH and HOME. `secret` names
    those of `env` whose values are kept out of the log and out of results.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$")
    url: str = ""
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = Field({}, repr=False)
    secret: frozenset[str] = frozenset()

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secret values to hide, the longest first.

        Values shorter than `_SHORTEST` characters are not hidden.
        """
        values = {
            self.env[name] for name in self.secret & self.env.keys() if len(self.env[name]) >= _SHORTEST
        }
        return tuple(sorted(values, key=len, reverse=True))

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if bool(self.url) == bool(self.command):
            raise ValueError("a server has either a url or a command")
        return self
