"""The settings of the demo model: the environment with the prefix BECKON_DEMO_, or flags."""

from pydantic_settings import SettingsConfigDict

from beckon_runtime.settings import ServingSettings, port_field


class Settings(ServingSettings):
    """Everything that can be set of the demo model."""

    model_config = SettingsConfigDict(
        env_prefix="BECKON_DEMO_",
        extra="ignore",
        cli_prog_name="python -m beckon_demo",
        cli_kebab_case=True,
    )

    port: int = port_field(8090, "The port to listen on, without access control")
