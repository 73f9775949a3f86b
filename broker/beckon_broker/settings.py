"""The settings of the embedded broker, from the environment."""

import os
import ssl
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from beckon_broker.inbox import check_inbox
from beckon_runtime.settings import ServingSettings, attribute_field, port_field


class Settings(ServingSettings):
    """Every setting of `python -m beckon_broker`."""

    model_config = SettingsConfigDict(env_prefix="BECKON_BROKER_", extra="ignore", populate_by_name=True)

    port: int = port_field(8081, "The port to listen on")
    source: Literal["folders", "cluster"] = Field(
        "folders",
        description="Where Brokers and Triggers are read: folders of manifests, or the API server, with "
        "those of the class Beckon.",
    )
    manifests: Annotated[tuple[Path, ...], NoDecode] = Field(
        (Path("deploy/examples"),),
        validation_alias="BECKON_MANIFESTS",
        description="Folders of manifests, separated as in PATH; of an object in several the last counts.",
    )
    max_event_bytes: int = Field(
        1024 * 1024,
        ge=64 * 1024,
        validation_alias="BECKON_MAX_EVENT_BYTES",
        description="Largest event or reply in bytes; as large as the Broker in your cluster takes them.",
    )
    nats_url: str = Field(
        "",
        repr=False,
        validation_alias="BECKON_NATS_URL",
        description="NATS servers whose JetStream stores the events, separated by commas, such as "
        "nats://127.0.0.1:4222; empty: events are in memory, and lost with the process.",
    )
    roles: Literal["both", "ingress", "dispatcher"] = Field(
        "both",
        description="What this process does: `ingress` accepts events, `dispatcher` delivers them, for "
        "processes that share a log in NATS.",
    )
    nats_credentials: Path | None = Field(
        None,
        validation_alias="BECKON_NATS_CREDENTIALS",
        description="A credentials file of NATS (a mounted Secret); without one, what the URL says.",
    )
    nats_ca: Path | None = Field(
        None,
        validation_alias="BECKON_NATS_CA",
        description="A file with the CA certificates of NATS servers over TLS (tls://); without one, those "
        "of this machine.",
    )
    nats_stream: str = Field(
        "beckon",
        pattern=r"^[A-Za-z0-9-]{1,32}$",
        validation_alias="BECKON_NATS_STREAM",
        description="The beginning of the names of streams and subjects; another one for each installation "
        "that shares the servers.",
    )
    nats_replicas: int = Field(
        1,
        ge=1,
        le=5,
        validation_alias="BECKON_NATS_REPLICAS",
        description="Servers of the NATS cluster that keep each event: 3 survive the loss of one of them.",
    )
    nats_max_bytes: int = Field(
        0,
        ge=0,
        validation_alias="BECKON_NATS_MAX_BYTES",
        description="Most bytes of all stored events together, above which new ones get 503; 0: as many as "
        "the server takes.",
    )
    lease_seconds: float = Field(
        10.0,
        ge=1,
        description="With NATS: seconds after which another broker takes over the deliveries of a dead one.",
    )
    correlation_attribute: str = attribute_field(
        "correlationid",
        "BECKON_CORRELATION_ATTRIBUTE",
        "The attribute of a call that its reply repeats; the same as the shim's.",
    )
    reply_attribute: str = attribute_field(
        "replyid",
        "BECKON_REPLY_ATTRIBUTE",
        "The attribute in which a reply repeats it; the broker sets it where a service does not.",
    )
    reply_inbox: str = Field(
        "",
        description="Where the shim takes replies, by a host name whose addresses are those of all its "
        "replicas, such as http://beckon-shim-inbox.beckon.svc.cluster.local:8083/replies: a reply goes "
        "straight to the replica that waits. Empty: replies reach the shim by its Triggers alone.",
    )
    reply_subscriber: str = Field(
        "",
        description="The subscriber of the shim's Triggers for replies, which needs no reply that is in the "
        "inbox; empty: the URL of the inbox.",
    )
    concurrency: int = Field(
        100,
        ge=1,
        description="Simultaneous attempts for one Trigger; fewer where its tool bears few calls at once.",
    )
    drain_seconds: float = Field(
        10.0,
        ge=0,
        validation_alias="BECKON_DRAIN_SECONDS",
        description="Seconds to finish queued deliveries after SIGTERM; what is left then is lost.",
    )

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if self.roles != "both" and not self.nats_url:
            raise ValueError("roles need a log that processes share; set BECKON_NATS_URL, or leave roles out")
        if not self.reply_subscriber:
            self.reply_subscriber = self.reply_inbox
        return self

    @field_validator("reply_inbox")
    @classmethod
    def _is_inbox(cls, value: str) -> str:
        return check_inbox(value) if value else value

    @field_validator("nats_ca")
    @classmethod
    def _has_certificates(cls, path: Path | None) -> Path | None:
        if path is not None:
            try:
                ssl.create_default_context(cafile=path)
            except OSError as error:
                reason = error.strerror or str(error)
                raise ValueError(f"{path} has no CA certificates that can be read: {reason}") from None
        return path

    @field_validator("manifests", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        """Split a list of folders as PATH is split."""
        if isinstance(value, str):
            return tuple(Path(part) for part in value.split(os.pathsep) if part)
        return value

    @field_validator("manifests")
    @classmethod
    def _are_folders(cls, folders: tuple[Path, ...], info: ValidationInfo) -> tuple[Path, ...]:
        if info.data.get("source") == "cluster":
            return ()
        for folder in folders:
            if not folder.is_dir():
                raise ValueError(f"{folder} is no folder; create it, or name another in BECKON_MANIFESTS")
        if not folders:
            raise ValueError("no folder is named; name one in BECKON_MANIFESTS")
        return folders
