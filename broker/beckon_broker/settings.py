"""The settings of the embedded broker, from the environment."""

import os
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from beckon_runtime.settings import ServingSettings, port_field


class Settings(ServingSettings):
    """Every setting of `python -m beckon_broker`."""

    model_config = SettingsConfigDict(env_prefix="BECKON_BROKER_", extra="ignore", populate_by_name=True)

    port: int = port_field(8081, "The port to listen on")
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
