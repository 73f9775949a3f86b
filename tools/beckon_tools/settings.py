"""The settings of a tool service, read from the environment in `__main__` only."""

from typing import Annotated

from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict

from beckon_runtime.logs import LogLevel
from beckon_runtime.settings import ServingSettings

Port = Annotated[int, Field(ge=0, le=65535)]
Seconds = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(gt=0)]


class Settings(ServingSettings):
    """Every setting of the SDK and of the shipped tools."""

    model_config = SettingsConfigDict(env_prefix="BECKON_TOOLS_", extra="ignore", populate_by_name=True)

    @property
    def correlation_names(self) -> tuple[str, str]:
        """The correlation attribute of a call, and the reply's extension.

        The extension returns the value of the attribute.
        """
        return self.correlation_attribute, self.reply_attribute

    host: str = Field(
        "127.0.0.1",
        description="Address to listen on; 0.0.0.0 in a container.",
        validation_alias="BECKON_HOST",
    )
    port: Port = Field(
        8080,
        description="Port to listen on, 0 for any; Knative sets it.",
        validation_alias="PORT",
    )
    correlation_attribute: str = Field(
        "correlationid",
        pattern="^[a-z0-9]{1,20}$",
        description='Attribute of the call whose value the reply returns; "id" returns the event\'s id.',
    )
    reply_attribute: str = Field(
        "replyid",
        pattern="^[a-z0-9]{1,20}$",
        description='Extension of the reply that holds that value; "responseid" for the first prototype.',
    )
    body_limit: Count = Field(1_048_576, description="Largest call that is read, in bytes.")
    reply_limit: Count = Field(1_000_000, description="Largest reply data, in bytes; Kafka takes 1 MiB.")
    body_timeout: Seconds = Field(30, description="Seconds in which the body of a call must have come.")
    concurrency: Count = Field(100, description="Calls that may run at once; more are told to come again.")
    remember_calls: Count = Field(2048, description="Outcomes kept to answer duplicate deliveries.")
    remember_bytes: Count = Field(33_554_432, description="Bytes of outcomes kept for duplicate deliveries.")
    remember_seconds: Seconds = Field(900, description="Seconds for which an outcome is kept.")
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
        1, description="Least seconds between two reports of progress; what comes between is left out."
    )
    drain_seconds: Count = Field(25, description="Seconds given to running calls after SIGTERM.")
    log_level: LogLevel = Field(
        "info", validation_alias="BECKON_LOG_LEVEL", description="The least severity that is logged."
    )

    outbound_timeout: Seconds = Field(8, description="Seconds that a web service may take to answer.")
    outbound_limit: Count = Field(1_048_576, description="Largest answer of a web service, in bytes.")
    user_agent: str = Field("beckon-tools/0.1", description="User-Agent sent to web services.")
    geocoding_url: str = Field(
        "https://geocoding-api.open-meteo.com/v1/search", description="Open-Meteo's search for places."
    )
    forecast_url: str = Field(
        "https://api.open-meteo.com/v1/forecast", description="Open-Meteo's current weather."
    )
    quotes_url: str = Field(
        "https://query1.finance.yahoo.com/v8/finance/chart",
        description="Yahoo Finance's charts, by which `track` knows prices.",
    )
    espeak_program: str = Field("espeak-ng", description="The program that speaks, a name or a path.")
    espeak_timeout: Seconds = Field(20, description="Seconds that speaking one text may take.")
