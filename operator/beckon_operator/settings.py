"""The settings of the operator, from environment variables `BECKON_OPERATOR_*`."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from beckon_contract.kubernetes_objects import DNS_LABEL
from beckon_runtime.settings import ServingSettings, attribute_field, port_field

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def _own_namespace() -> str:
    """Return the namespace of this pod, or `beckon` outside of a pod."""
    try:
        return _ACCOUNT.read_text(encoding="utf-8").strip()
    except OSError:
        return "beckon"


class Settings(ServingSettings):
    """Everything that can be set; each field says what it means."""

    model_config = SettingsConfigDict(
        env_prefix="BECKON_OPERATOR_", env_file=None, extra="ignore", frozen=True, validate_default=True
    )

    namespace: str = Field(
        default_factory=_own_namespace,
        validation_alias="BECKON_POD_NAMESPACE",
        description="The operator's own namespace, for its Lease and the shim's keys; by default its pod's.",
    )
    watch_namespaces: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="The namespaces to watch, separated by commas; empty for all."
    )
    replies_url: str = Field(
        "http://beckon-shim-replies.beckon.svc.cluster.local",
        pattern=r"^https?://[^/]+$",
        description="Where the shim takes replies (/replies) and dead letters (/dead-letters).",
    )
    probe_seconds: float = Field(
        60.0,
        ge=0,
        description="Seconds between two probes of a Broker, by which the condition RepliesArrive is judged; "
        "0 for no probes.",
    )
    reply_attribute: str = attribute_field(
        "replyid", "BECKON_REPLY_ATTRIBUTE", "The attribute that the shim knows a reply by."
    )
    reply_triggers: bool = Field(
        default=True,
        description="Whether the operator writes the Triggers that bring replies and progress reports to the "
        "shim, for each Broker that carries calls.",
    )
    timeout_brokers: Annotated[tuple[tuple[str, str], ...], NoDecode] = Field(
        (),
        description="The Brokers of the class Kafka that get a `spec.delivery.timeout` if they have none, as "
        "NAMESPACE/NAME, separated by commas; Brokers of other classes need none.",
    )
    cluster_domain: str = Field("cluster.local", description="The domain of the cluster's DNS.")
    broker_ingress: str = Field(
        "beckon-broker-ingress",
        pattern=r"^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$",
        description="The Service of the ingress of Brokers of the class Beckon, in the operator's namespace; "
        "empty to leave the class to another operator.",
    )
    broker_dispatcher: str = Field(
        "beckon-broker-dispatcher",
        description="The Service of the pods that deliver, where they are others than those of the ingress: "
        "a Trigger is Ready once these know it, too.",
    )
    nats_secret: str = Field(
        "",
        validation_alias="BECKON_NATS_SECRET",
        description="The Secret with the credentials of NATS that the broker's pods mount; a Broker's "
        "ConfigMap may require it.",
    )
    keys_secret: str = Field(
        "beckon-shim-keys",
        description="The Secret with the shim's keys, which is made where it is missing; empty to make none.",
    )
    agent_keys_secret: str = Field(
        "beckon-agent-keys",
        description="The Secret with the agent's API keys; where it is missing it is made with one key, "
        "which is in the Secret beckon-first-key; empty to make none.",
    )
    host: str = Field(
        "0.0.0.0",  # noqa: S104  # probes come from outside
        validation_alias="BECKON_HOST",
        description="The address of health and metrics.",
    )
    port: int = port_field(8080, "Their port")

    @field_validator("watch_namespaces", mode="before")
    @classmethod
    def _split_names(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return tuple(sorted({name.strip() for name in value.split(",") if name.strip()}))

    @field_validator("timeout_brokers", mode="before")
    @classmethod
    def _split_brokers(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        names = sorted({name.strip() for name in value.split(",") if name.strip()})
        for name in names:
            if name.count("/") != 1 or not all(name.split("/")):
                raise ValueError(f"{name!r} is no Broker; write NAMESPACE/NAME")
        return tuple(tuple(name.split("/")) for name in names)

    @field_validator("namespace", "watch_namespaces")
    @classmethod
    def _are_namespaces(cls, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
        for name in (value,) if isinstance(value, str) else value:
            if not DNS_LABEL.fullmatch(name):
                raise ValueError(f"{name!r} is no namespace: lower-case letters, digits and '-', at most 63")
        return value
