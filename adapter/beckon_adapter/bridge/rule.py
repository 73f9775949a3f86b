"""The MCP rule of an EventType: the annotation `beckon.dev/mcp`.

server: files                     # a NAME that the adapter's owner gave, or a URL of a host that is allowed
tool: read_file
timeout: 60s
credential: petstore
"""

import re
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from beckon_adapter.rule import InvalidRule, seconds
from beckon_adapter.targets import parse_target
from beckon_contract.fields import FieldProblem
from beckon_contract.options import MCP
from beckon_contract.yamltext import NotReadable, read_document

_PLACE = f"metadata.annotations[{MCP}]"
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")


class McpRule(BaseModel):
    """One rule; `timeout` is in seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    server: str
    tool: str = Field(min_length=1, max_length=128)
    timeout: Annotated[float, BeforeValidator(seconds)] = 60.0
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
