"""The settings of the HTTP adapter beside those of every tool, read in `__main__` only."""

from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, Field
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from beckon_adapter.egress.hosts import Credential
from beckon_adapter.rule import NamedServer
from beckon_runtime.settings import HostList, read_list

Entry = TypeVar("Entry", bound=BaseModel)


def _read_folders(value: object) -> object:
    return [each for each in value.split(":") if each] if isinstance(value, str) else value


class AdapterSettings(BaseSettings):
    """What the adapter's owner decides."""

    model_config = SettingsConfigDict(env_prefix="BECKON_ADAPTER_", extra="ignore", populate_by_name=True)

    allowed_hosts: HostList = Field(
        (),
        description="Hosts that may be called: names with commas between them, `*.example.com` for every "
        "name below it, or a list in YAML of `{host: …, private: true}` for one on a private network, with "
        "`http://host:port` where it is not https. None: nothing is called.",
    )
    credentials: Annotated[tuple[Credential, ...], NoDecode, BeforeValidator(read_list)] = Field(
        (),
        description="A list in YAML of `{name: …, hosts: […], type: bearer|basic|header|query|oauth|login, "
        "as: …, file: …}`; `file` holds the secret, `as` names the header or the parameter.",
    )
    mcp_servers: Annotated[tuple[NamedServer, ...], NoDecode, BeforeValidator(read_list)] = Field(
        (),
        description="MCP servers by name, a list in YAML of `{name: …, url: …}` or `{name: …, command: […], "
        "env: {…}, secret: […]}` for a command that speaks over its standard streams; `secret` names "
        "variables of `env` whose values never appear in log and results.",
    )
    manifests: Annotated[tuple[Path, ...], NoDecode, BeforeValidator(_read_folders)] = Field(
        (),
        validation_alias="BECKON_MANIFESTS",
        description="Folders of EventTypes, with colons between them; unset: those of the cluster.",
    )
    namespaces: Annotated[tuple[str, ...], NoDecode, BeforeValidator(read_list)] = Field(
        ("default",),
        description="Namespaces of the cluster whose EventTypes are served, with commas between them; "
        "`*` for all.",
    )
