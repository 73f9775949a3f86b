"""Settings common to all services with a port, and the report of a wrong setting."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from beckon_runtime.connections import ConnectionLimits
from beckon_runtime.egress import AllowedHost
from beckon_runtime.logs import LogLevel
from beckon_runtime.origins import OriginPolicy, parse_hosts, parse_origins


def read_list(value: object) -> object:
    """Read a list of YAML or JSON, or names with commas between them."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if not text.startswith(("[", "-")):
        return [each.strip() for each in text.split(",") if each.strip()]
    # Imported late: few services have a list in YAML.
    from beckon_contract.yamltext import NotReadable, read_document  # noqa: PLC0415  # see above

    try:
        return read_document(text)
    except NotReadable as error:
        raise ValueError(f"neither names with commas between them nor a list in YAML: {error}") from None


def _read_hosts(value: object) -> object:
    listed = read_list(value)
    if not isinstance(listed, Sequence):
        return listed
    return [{"host": each} if isinstance(each, str) else each for each in listed]


HostList = Annotated[tuple[AllowedHost, ...], NoDecode, BeforeValidator(_read_hosts)]
"""The type of a setting with hosts that may be called."""


class ServingSettings(BaseSettings):
    """The base of a service's settings: its address and log, who may call its ports, and how slowly."""

    model_config = SettingsConfigDict(populate_by_name=True)

    host: str = Field(
        "127.0.0.1",
        validation_alias="BECKON_HOST",
        min_length=1,
        description="The address to listen on; 0.0.0.0 in a container.",
    )
    log_level: LogLevel = Field(
        "info", validation_alias="BECKON_LOG_LEVEL", description="The least severity that is logged."
    )
    allowed_hosts: str = Field(
        "",
        validation_alias="BECKON_ALLOWED_HOSTS",
        description="Names by which the service may be called, separated by commas. On loopback: besides "
        "localhost and the addresses of loopback. Elsewhere: these alone and addresses; empty for any name.",
    )
    allowed_origins: str = Field(
        "",
        validation_alias="BECKON_ALLOWED_ORIGINS",
        description="Origins of web pages that may call the service, such as https://chat.example.com, "
        "separated by commas, besides its own. The agent's answers have CORS headers for them.",
    )
    receive_seconds: float = Field(
        30,
        gt=0,
        le=3600,
        validation_alias="BECKON_RECEIVE_SECONDS",
        description="Seconds in which a request must arrive whole, headers and body; later it gets 408.",
    )
    idle_seconds: float = Field(
        120,
        gt=0,
        le=86_400,
        validation_alias="BECKON_IDLE_SECONDS",
        description="Seconds after which a connection without a request is closed, and one whose client "
        "reads nothing of its answer; above the 90 s of Go's clients.",
    )
    max_connections: int = Field(
        0,
        ge=0,
        validation_alias="BECKON_MAX_CONNECTIONS",
        description="Connections that a port has at once: a further one takes the place of the one that is "
        "idle longest, or gets 503. 0: 8192, or three quarters of the files that the process may open where "
        "that is less.",
    )
    max_connections_per_client: int = Field(
        0,
        ge=0,
        validation_alias="BECKON_MAX_CONNECTIONS_PER_CLIENT",
        description="The same for the connections of one address, which may be a proxy. 0: half of all.",
    )

    @field_validator("port", mode="before", check_fields=False)
    @classmethod
    def _drop_service_address(cls, value: object) -> object:
        # Beside a Service called beckon, Kubernetes sets BECKON_PORT to the Service's address.
        is_address = isinstance(value, str) and value.startswith("tcp://")
        return cls.model_fields["port"].default if is_address else value

    @field_validator("allowed_hosts")
    @classmethod
    def _are_hosts(cls, value: str) -> str:
        parse_hosts(value)
        return value

    @field_validator("allowed_origins")
    @classmethod
    def _are_origins(cls, value: str) -> str:
        parse_origins(value)
        return value

    def origin_policy(self, address: str, *, local_pages: bool = False) -> OriginPolicy:
        """Return the allowed hosts and origins of a port at an address."""
        return OriginPolicy.at(address, self.allowed_hosts, self.allowed_origins, local_pages=local_pages)

    def connection_limits(self, share: float = 0.75, most: int = 8192) -> ConnectionLimits:
        """Return the limits of a port with this share of the process's files.

        At most `most` connections are accepted if the setting leaves their number open.
        """
        return ConnectionLimits.within_files(
            share=share,
            total=self.max_connections,
            per_client=self.max_connections_per_client,
            receive_seconds=self.receive_seconds,
            idle_seconds=self.idle_seconds,
            most=most,
        )


def port_field(default: int, description: str) -> Any:
    """Return the field of a service's main port, `BECKON_PORT` for each: a process has its own."""
    return Field(
        default,
        ge=0,
        le=65535,
        validation_alias="BECKON_PORT",
        description=f"{description}; 0 takes a free one.",
    )


def attribute_field(default: str, variable: str, description: str) -> Any:
    """Return the field of an extension attribute of CloudEvents that several services must name alike."""
    return Field(
        default, pattern=r"^[a-z][a-z0-9]{0,19}$", validation_alias=variable, description=description
    )


def setting_problems(prefix: str, error: ValidationError) -> list[str]:
    """Return a line for each wrong setting, with its environment variable.

    `prefix` is that of the service, such as `BECKON_`. The values are left out, since they may be secrets.
    """
    errors = error.errors(include_input=False, include_context=False, include_url=False)
    return [_describe_problem(prefix, one["loc"], one["msg"].removeprefix("Value error, ")) for one in errors]


def _describe_problem(prefix: str, location: Sequence[int | str], message: str) -> str:
    return f"{_variable_of(prefix, str(location[0]))}: {message}" if location else message


def _variable_of(prefix: str, reported: str) -> str:
    """Return the environment variable of a field.

    pydantic reports the field by its alias, in capitals, or by its own name.
    """
    if reported.isupper() or reported.startswith("openai_"):
        return reported.upper()
    return f"{prefix}{reported}".upper()
