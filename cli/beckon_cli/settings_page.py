"""The page of all settings, made from the settings classes; `docs/settings_page.py` writes it."""

from collections.abc import Iterable, Iterator

from pydantic import AliasChoices, SecretStr
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings

from beckon_adapter.settings import AdapterSettings
from beckon_agent.settings import Settings as AgentSettings
from beckon_broker.settings import Settings as BrokerSettings
from beckon_cli.settings import Settings as PlatformSettings
from beckon_demo.__main__ import Settings as DemoSettings
from beckon_shim.settings import Settings as ShimSettings
from beckon_tools.settings import Settings as ToolSettings

_HEAD = """# Settings

Made from the code by `make docs`; a test keeps it true. Every name is an environment variable.
The local platform also reads them from a `.env` file in the folder where it is started, and takes those
of the first table as flags: `BECKON_PORT` is `beckon up --port`. A flag wins over the environment, the
environment over `.env`. Settings of the other tables are handed through to their services; those that say
where a service listens, and where it finds the others, are chosen by the local platform itself: every service
reads `BECKON_HOST` and `BECKON_PORT`, each in its own environment.
"""

Table = tuple[str, str, type[BaseSettings]]

# What the local platform starts, and so what it knows the settings of.
TABLES: tuple[Table, ...] = (
    ("The local platform", "`beckon up`, `make run`", PlatformSettings),
    ("The agent", "`python -m beckon_agent`", AgentSettings),
    ("The shim", "`python -m beckon_shim`", ShimSettings),
    ("The embedded broker", "`python -m beckon_broker`", BrokerSettings),
    ("A tool", "`python -m beckon_tools serve NAME`", ToolSettings),
    (
        "The HTTP adapter",
        "`python -m beckon_adapter`, with the settings of a tool beside these",
        AdapterSettings,
    ),
    ("The demo model", "`python -m beckon_demo`", DemoSettings),
)


def settings_page(tables: Iterable[Table]) -> str:
    """Return the page as Markdown."""
    return "\n".join([_HEAD, *(_settings_table(*table) for table in tables)])


def field_names(settings: type[BaseSettings]) -> Iterator[tuple[str, FieldInfo]]:
    """Yield the environment's name of every field."""
    prefix = settings.model_config.get("env_prefix", "")
    for name, field in settings.model_fields.items():
        alias = field.validation_alias
        if isinstance(alias, AliasChoices):
            alias = str(alias.choices[0])
        yield (alias if isinstance(alias, str) else f"{prefix}{name}".upper()), field


def _settings_table(title: str, command: str, settings: type[BaseSettings]) -> str:
    lines = [f"## {title}", "", f"{command}", "", "| name | default | what it means |", "| --- | --- | --- |"]
    lines += [
        f"| `{name}` | {_default_text(field)} | {_cell_text(field.description or '')} |"
        for name, field in field_names(settings)
    ]
    return "\n".join([*lines, ""])


def _default_text(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default_factory is not None:
        return "determined at start"
    value = field.default
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if isinstance(value, tuple):
        value = ":".join(str(part) for part in value)
    return "" if value in (None, "", frozenset(), ()) else f"`{_cell_text(str(value))}`"


def _cell_text(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
