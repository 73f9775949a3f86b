"""The settings of a tool service, read from the environment in `__main__` only."""

from typing import Annotated

from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict

from beckon_runtime.settings import ServingSettings

Port = Annotated[int, Field(ge=0, le=65535)]
Seconds = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(gt=0)]

USER_AGENT = "beckon-tools/0.1"
"""The User-Agent sent to web services."""

MAX_ANSWER_BYTES = 1_048_576
"""The largest answer of a web service."""

_ATTRIBUTES = 48_576  # bytes of an event that its data leave to attributes


class Settings(ServingSettings):
    """Every setting of the SDK and of the shipped tools."""

    model_config = SettingsConfigDict(env_prefix="BECKON_TOOLS_", extra="ignore", populate_by_name=True)

    @property
    def correlation_names(self) -> tuple[str, str]:
        """The correlation attribute of a call, and the reply's extension.

        The extension returns the value of the attribute.
        """
        return self.correlation_attribute, self.reply_attribute

    @property
    def reply_limit(self) -> int:
        """The largest data of a reply in bytes: those of an event, less room for its attributes."""
        return self.max_event_bytes - _ATTRIBUTES

    port: Port = Field(
        8080,
        description="Port to listen on, 0 for any; Knative sets it.",
        validation_alias="PORT",
    )
    correlation_attribute: str = Field(
        "correlationid",
        pattern="^[a-z0-9]{1,20}$",
        description="Attribute of a call whose value the reply returns, where a shim of another name or the "
        'first prototype calls the tool; "id" returns the event\'s id.',
        validation_alias="BECKON_CORRELATION_ATTRIBUTE",
    )
    reply_attribute: str = Field(
        "replyid",
        pattern="^[a-z0-9]{1,20}$",
        description='Extension of the reply that holds that value; "responseid" for the first prototype.',
        validation_alias="BECKON_REPLY_ATTRIBUTE",
    )
    max_event_bytes: Annotated[int, Field(ge=65_536)] = Field(
        1_048_576,
        description="Largest event in bytes; raise it where the Broker takes more than Kafka's 1 MiB.",
        validation_alias="BECKON_MAX_EVENT_BYTES",
    )
    concurrency: Count = Field(
        100, description="Calls that may run at once; further ones get 503 and are retried."
    )
    remember_seconds: Seconds = Field(900, description="Seconds for which an outcome is remembered.")
    remember_url: SecretStr = Field(
        SecretStr(""),
        description="Where the replicas of a tool share outcomes: redis://… or postgresql://…; "
        "unset: each remembers its own.",
    )
    remember_lease: Annotated[float, Field(ge=1)] = Field(
        30, description="Seconds after which a call whose replica died may be run by another."
    )
    outbox: str = Field(
        "",
        description="Path of the file (SQLite) with late answers that no Broker has acknowledged, to send "
        "them again, after a restart, too; unset: `answer` raises `NotSent`.",
    )
    progress_seconds: Annotated[float, Field(ge=0)] = Field(
        1,
        description="Least seconds between two reports of progress after the third; "
        "what comes between is left out.",
    )
    drain_seconds: Count = Field(
        25,
        description="Seconds given to running calls after SIGTERM; less than the Pod's grace period.",
        validation_alias="BECKON_DRAIN_SECONDS",
    )
    espeak_program: str = Field("espeak-ng", description="The program that speaks, a name or a path.")
