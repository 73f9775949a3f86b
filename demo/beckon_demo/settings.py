"""The settings of the demo model: the environment with the prefix BECKON_DEMO_, or flags."""

from pydantic import AliasChoices, Field
from pydantic_settings import SettingsConfigDict

from beckon_runtime.logs import LogLevel
from beckon_runtime.settings import ServingSettings


class Settings(ServingSettings):
    """Everything that can be set of the demo model."""

    model_config = SettingsConfigDict(
        env_prefix="BECKON_DEMO_",
        extra="ignore",
        cli_prog_name="python -m beckon_demo",
        cli_kebab_case=True,
    )

    host: str = Field(
        "127.0.0.1",
        validation_alias=AliasChoices("BECKON_HOST", "host"),
        description="The address to listen on; it has no access control.",
    )
    port: int = Field(
        8090, ge=0, le=65535, description="The port to listen on; 0 takes a free one and logs it."
    )
    log_level: LogLevel = Field(
        "info",
        validation_alias=AliasChoices("BECKON_LOG_LEVEL", "log_level"),
        description="The least severity that is logged.",
    )
