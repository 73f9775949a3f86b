"""The MCP rule of an EventType: the annotation `beckon.dev/mcp`, and the servers named by the owner."""

import re
from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from beckon_adapter.rule import InvalidRule, read_seconds
from beckon_adapter.templates import parse_target
from beckon_contract.catalogue.options import MCP
from beckon_contract.fields import FieldProblem
from beckon_contract.yamltext import NotReadable, read_document

SETTING = "BECKON_ADAPTER_MCP_SERVERS"
_SHORTEST = 6  # characters of a secret that is looked for; a shorter one is part of ordinary words


class NamedServer(BaseModel):
    """One entry of the setting: a server at a URL, or a command that speaks MCP over its standard streams.

    A command has the environment of `env` and nothing of the adapter's but PATH and HOME. `secret` names
    those of `env` whose values never appear in the log and in results.
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


_PLACE = f"metadata.annotations[{MCP}]"
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")


class McpRule(BaseModel):
    """One rule; `timeout` is in seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    server: str
    tool: str = Field(min_length=1, max_length=128)
    timeout: Annotated[float, BeforeValidator(read_seconds)] = 60.0
    credential: str | None = Field(None, pattern=r"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$")

    @field_validator("server")
    @classmethod
    def _is_server(cls, value: str) -> str:
        if "://" in value:
            if any(segment.names for segment in parse_target(value).path):
                raise ValueError("the URL of a server has no arguments in it")
        elif not _NAME.fullmatch(value):
            raise ValueError("must be the name of a server, or its URL such as https://mcp.example.com/mcp")
        return value


def parse_mcp_rule(text: str) -> McpRule:
    """Read the annotation's YAML or JSON; raise `InvalidRule`."""
    try:
        document = read_document(text)
    except NotReadable as error:
        raise InvalidRule([FieldProblem(_PLACE, f"not YAML: {error}")]) from None
    if not isinstance(document, dict):
        raise InvalidRule([FieldProblem(_PLACE, "must be a mapping with server and tool")])
    try:
        return McpRule.model_validate(document)
    except ValidationError as error:
        raise InvalidRule(
            FieldProblem(
                ".".join([_PLACE, *map(str, each["loc"])]), each["msg"].removeprefix("Value error, ")
            )
            for each in error.errors(include_url=False)
        ) from None
