"""The settings of the local platform: environment, `.env` and flags, by the same names."""

import os
from pathlib import Path
from urllib.parse import urlsplit

from dotenv import dotenv_values
from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from beckon_cli.errors import CommandError
from beckon_runtime.settings import setting_problems

DEMO_DIALECTS = frozenset({"auto", "native", "prompted", "chatglm3"})
LOCAL_MODEL = "local"
_OURS = ("BECKON_", "OPENAI_")
_SECRETS = ("BECKON_API_KEY", "BECKON_NATS_URL", "OPENAI_API_KEY")
_EXAMPLES = Path("deploy/examples")
_NATS_SCHEMES = ("nats", "tls", "ws", "wss")


class Settings(BaseSettings):
    """What `beckon up` reads; every other setting of a service is handed through to it."""

    model_config = SettingsConfigDict(
        env_prefix="BECKON_", env_file=".env", extra="ignore", populate_by_name=True, env_ignore_empty=True
    )

    openai_base_url: str = Field(
        "",
        validation_alias=AliasChoices("OPENAI_BASE_URL", "openai_base_url"),
        description="An OpenAI-compatible server, such as http://localhost:11434/v1; unset: the demo model.",
    )
    openai_api_key: SecretStr = Field(
        SecretStr(""),
        validation_alias=AliasChoices("OPENAI_API_KEY", "openai_api_key"),
        description="The key for that server.",
    )
    api_key: SecretStr = Field(
        SecretStr(""),
        description="The API key of `beckon ask` and the like, for an agent that requires one.",
    )
    model: str = Field(
        "",
        description="The model's name at that server; unset: the first one it lists. Without a server, "
        "`local` is a small language model on this machine.",
    )
    dialect: str = Field(
        "auto", description="How the model calls tools: auto, native, prompted, chatglm3 or another dialect."
    )
    manifests: Path = Field(
        _EXAMPLES,
        validate_default=True,
        description="The folder of EventTypes, Triggers and Services; unset, where there is no such folder: "
        "the same examples from the installed package.",
    )
    host: str = Field(
        "127.0.0.1",
        description="The address to listen on; anything but loopback needs BECKON_KEYS_FILE, "
        "BECKON_OIDC_ISSUER or BECKON_ANONYMOUS, which say who is admitted.",
    )
    port: int = Field(8080, ge=1, le=65535, description="The agent's port; the other ports follow.")
    nats_url: SecretStr = Field(
        SecretStr(""),
        description="NATS servers that keep the events, for the broker alone, separated by commas, such as "
        "nats://127.0.0.1:4222; unset: memory, or a server of its own with `beckon up --durable`.",
    )

    @field_validator("manifests")
    @classmethod
    def _find_examples(cls, folder: Path) -> Path:
        packaged = Path(__file__).with_name("examples")
        return packaged if folder == _EXAMPLES and not folder.is_dir() and packaged.is_dir() else folder

    @field_validator("dialect")
    @classmethod
    def _is_known(cls, value: str) -> str:
        name = value.strip().lower().replace("-", "_")
        if name == "auto":
            return name
        from beckon_agent.dialects.registry import DIALECTS  # noqa: PLC0415  # a tenth of a second

        if name not in DIALECTS:
            raise ValueError(f"there is no dialect {value!r}; choose one of: auto, {', '.join(DIALECTS)}")
        return name

    @field_validator("manifests")
    @classmethod
    def _is_no_list(cls, value: Path) -> Path:
        if ":" in str(value.resolve()):
            raise ValueError("a colon separates folders, so the path of this one may not hold one")
        return value

    @field_validator("nats_url")
    @classmethod
    def _are_nats_addresses(cls, value: SecretStr) -> SecretStr:
        for url in value.get_secret_value().split(","):
            if value.get_secret_value() and not _is_nats_address(url.strip()):
                raise ValueError("it has a part that is no address; write for instance nats://127.0.0.1:4222")
        return value

    @model_validator(mode="after")
    def _demo_speaks_it(self) -> "Settings":
        if not (self.openai_base_url or self.uses_local_model) and self.dialect not in DEMO_DIALECTS:
            known = ", ".join(sorted(DEMO_DIALECTS))
            raise ValueError(
                f"BECKON_DIALECT: the demo model speaks {known}, not {self.dialect}; set OPENAI_BASE_URL"
            )
        return self

    @property
    def uses_local_model(self) -> bool:
        """True if the platform is to serve a language model itself."""
        return self.model == LOCAL_MODEL and not self.openai_base_url

    @property
    def url(self) -> str:
        """The agent's URL as seen from this machine."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host  # noqa: S104 compared, not bound
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"


def _is_nats_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in _NATS_SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def load_settings(**flags: object) -> Settings:
    """Read the settings; given flags take precedence.

    A flag of `None` counts as not given. Raises `CommandError` for a bad value.
    """
    values = {name: value for name, value in flags.items() if value is not None}
    try:
        return Settings(**values)  # type: ignore[arg-type]  # pydantic checks the values
    except UnicodeDecodeError:
        raise CommandError("the file .env is not UTF-8", status=2) from None
    except ValidationError as error:
        raise CommandError(setting_problems("BECKON_", error)[0], status=2) from None


def child_environment() -> dict[str, str]:
    """Return this environment with the `.env` file's own settings added, for the services.

    Secrets are left out: each goes to the one service that needs it.
    """
    from_file = {
        name: value for name, value in dotenv_values(".env").items() if value and name.startswith(_OURS)
    }
    return {name: value for name, value in {**from_file, **os.environ}.items() if name not in _SECRETS}
