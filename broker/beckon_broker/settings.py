"""The settings of the embedded broker, from the environment."""

import os
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from beckon_runtime.logs import LogLevel
from beckon_runtime.settings import ServingSettings


class Settings(ServingSettings):
    """Every setting of `python -m beckon_broker`."""

    model_config = SettingsConfigDict(env_prefix="BECKON_BROKER_", extra="ignore", populate_by_name=True)

    host: str = Field(
        "127.0.0.1",
        validation_alias="BECKON_HOST",
        min_length=1,
        description="Address to listen on; only this machine can reach the default.",
    )
    port: int = Field(8081, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    manifests: Annotated[tuple[Path, ...], NoDecode] = Field(
        (Path("deploy/examples"),),
        validation_alias="BECKON_MANIFESTS",
        description="Folders of manifests, separated as in PATH; of an object in several the last counts.",
    )
    max_event_bytes: int = Field(
        1024 * 1024,
        ge=64 * 1024,
        description="Size of the largest event or reply taken, in bytes, attributes included.",
    )
    max_queued_deliveries: int = Field(
        10_000,
        ge=1,
        description="Open deliveries (one event to one Trigger) from which on new events are answered 503.",
    )
    max_queued_bytes: int = Field(
        64 * 1024 * 1024,
        ge=1,
        description="Bytes of queued events from which on new events are answered 503.",
    )
    concurrency: int = Field(100, ge=1, description="Attempts under way at once for one Trigger.")
    request_timeout: float = Field(
        600.0,
        gt=0,
        description="Seconds for one attempt where delivery.timeout says nothing; Knative's Kafka broker's.",
    )
    drain_seconds: float = Field(
        10.0,
        ge=0,
        description="Seconds to finish queued deliveries after SIGTERM; what is left then is lost.",
    )
    log_level: LogLevel = Field(
        "info", validation_alias="BECKON_LOG_LEVEL", description="The least severity that is logged."
    )

    @field_validator("manifests", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        """Split a list of folders as PATH is split."""
        if isinstance(value, str):
            return tuple(Path(part) for part in value.split(os.pathsep) if part)
        return value

    @field_validator("manifests")
    @classmethod
    def _are_folders(cls, folders: tuple[Path, ...]) -> tuple[Path, ...]:
        for folder in folders:
            if not folder.is_dir():
                raise ValueError(f"{folder} is no folder; create it, or name another in BECKON_MANIFESTS")
        if not folders:
            raise ValueError("no folder is named; name one in BECKON_MANIFESTS")
        return folders
