"""The settings of the shim, from environment variables `BECKON_SHIM_*`."""

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_settings import SettingsConfigDict

from beckon_contract.correlation import check_replica, pod_replica
from beckon_runtime.settings import ServingSettings, attribute_field, port_field
from beckon_shim.brokers import Templates
from beckon_shim.peers import Addresses

_OWN_ATTRIBUTES = frozenset(
    ("id", "source", "type", "specversion", "subject", "time", "datacontenttype", "dataschema", "data")
)


class Settings(ServingSettings):
    """Everything that can be set; each field says what it means."""

    model_config = SettingsConfigDict(env_prefix="BECKON_SHIM_", env_file=None, extra="ignore", frozen=True)

    brokers: Literal["template", "cluster"] = Field(
        "template",
        description="How a Broker's address is found: `template` makes it of broker_url; `cluster` follows "
        "the Brokers in the API server and takes what their status says.",
    )
    namespaces: str = Field(
        "",
        description="With brokers=cluster: the namespaces whose Brokers are served, separated by commas; "
        "empty for all.",
    )
    service_account: str = Field(
        "",
        description="The service account of this Pod (downward API): tokens are requested in its name for "
        "Brokers that require one (OIDC); empty without such Brokers.",
    )
    pod_namespace: str = Field(
        "",
        validation_alias="BECKON_POD_NAMESPACE",
        description="The namespace of this Pod (downward API), for the same.",
    )
    pod_ip: str = Field(
        "",
        description="The IP of this Pod (downward API): it names this replica, and the others are reached "
        "at theirs; instead of replica and peers.",
    )
    broker_url: str = Field(
        "http://127.0.0.1:8081/{namespace}/{name}",
        description="Where Brokers take events; {namespace} and {name} come from the caller's path, "
        "and a URL without them serves every path.",
    )
    port: int = port_field(8082, "The port for callers")
    reply_port: int = Field(
        8083, ge=0, le=65535, description="The port for replies and dead letters; 0 chooses a free one."
    )
    keys: str = Field(
        "",
        repr=False,
        description="Secrets that sign the tokens, separated by commas, each at least 16 bytes in "
        "hexadecimal or Base64; the first signs, all verify. With none: a random one, for one replica.",
    )
    keys_file: Path | None = Field(
        None,
        description="A file with such secrets, one a line (a mounted Secret); read again when it changes.",
    )
    open_calls: bool = Field(
        False,
        description="Whether calls are taken without a credential: then every client of the port may call "
        "every tool. Otherwise callers sign with the keys above, as the agent does.",
    )
    replica: str = Field("shim-0", description="The name of this replica in its tokens: a DNS label.")
    peers: str = Field(
        "",
        description="Where the reply listeners of all replicas are: a template with {replica}, or a list "
        "shim-0=http://10.0.0.1:8083,shim-1=… ; empty with one replica.",
    )
    correlation_attribute: str = attribute_field(
        "correlationid",
        "BECKON_CORRELATION_ATTRIBUTE",
        "The attribute that carries the token out; another one where tools give it a meaning.",
    )
    reply_attribute: str = attribute_field(
        "replyid",
        "BECKON_REPLY_ATTRIBUTE",
        "The attribute in which a reply brings the token back, for example `responseid`.",
    )
    max_timeout: float = Field(600.0, gt=0, description="The most seconds that a caller may ask for.")
    max_waiting: int = Field(10_000, ge=1, description="How many calls may wait at once; more get 503.")
    max_event_bytes: int = Field(
        1_048_576,
        ge=65_536,
        validation_alias="BECKON_MAX_EVENT_BYTES",
        description="Largest event or reply in bytes, 413 above it; as large as the Broker takes them.",
    )
    drain_seconds: float = Field(
        25.0,
        ge=0,
        validation_alias="BECKON_DRAIN_SECONDS",
        description="Seconds given to waiting calls after SIGTERM, before they get 503; less than the Pod's "
        "grace period.",
    )
    leave_seconds: float = Field(
        0.0,
        ge=0,
        description="How long new calls are still taken after SIGTERM, before draining: as long as a Service "
        "may take to notice that this replica is not ready.",
    )
    late_reply_sink: str | None = Field(
        None,
        pattern=r"^https?://",
        description="A URL for late replies, whose callers no longer wait; without one they are logged.",
    )

    @field_validator("broker_url")
    @classmethod
    def _is_template(cls, value: str) -> str:
        Templates(value)
        return value

    @field_validator("pod_ip")
    @classmethod
    def _is_ip(cls, value: str) -> str:
        if value:
            pod_replica(value)
        return value

    @field_validator("peers")
    @classmethod
    def _has_addresses(cls, value: str) -> str:
        Addresses(value)
        return value

    @field_validator("replica")
    @classmethod
    def _is_label(cls, value: str) -> str:
        return check_replica(value)

    @field_validator("correlation_attribute", "reply_attribute")
    @classmethod
    def _is_extension(cls, value: str, info: ValidationInfo) -> str:
        if value in _OWN_ATTRIBUTES:
            raise ValueError(f"{value!r} is an attribute of CloudEvents itself; name an extension")
        return value

    @model_validator(mode="after")
    def _check_consistency(self) -> "Settings":
        if self.correlation_attribute == self.reply_attribute:
            raise ValueError(
                "correlation_attribute and reply_attribute must differ, or every call is a reply"
            )
        if self.keys and self.keys_file is not None:
            raise ValueError("keys and keys_file are both set; set one")
        if self.pod_ip and not self.model_fields_set.isdisjoint(("replica", "peers")):
            raise ValueError("pod_ip is set beside replica or peers; set pod_ip alone, or the other two")
        if bool(self.service_account) != bool(self.pod_namespace):
            raise ValueError("set service_account and pod_namespace both, or neither")
        return self

    @property
    def own_name(self) -> str:
        """The name of this replica in its tokens."""
        return pod_replica(self.pod_ip) if self.pod_ip else self.replica

    @property
    def served_namespaces(self) -> tuple[str, ...]:
        """The namespaces with served Brokers; empty for all."""
        return tuple(filter(None, (part.strip() for part in self.namespaces.split(","))))
