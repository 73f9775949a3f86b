"""The composition root of the adapter: settings, the source of EventTypes, the server, the exit code."""

import asyncio
import logging
import os
import sys

from pydantic import ValidationError
from pydantic_settings import BaseSettings

from beckon_adapter.app import Source, new_app
from beckon_adapter.command_line import CommandLine, act_as_init, read_command_line
from beckon_adapter.egress.hosts import AllowedHosts
from beckon_adapter.registry import RuleRegistry
from beckon_adapter.settings import AdapterSettings
from beckon_runtime.settings import setting_problems
from beckon_sources.api_types import NotConfigured
from beckon_tools.__main__ import read_settings
from beckon_tools.errors import UsageError
from beckon_tools.server import run_app

logger = logging.getLogger(__name__)

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def main() -> int:
    """Serve until SIGTERM; return 2 for an invalid setting or argument."""
    act_as_init()
    try:
        _run_adapter(read_command_line(sys.argv[1:], os.environ))
    except UsageError as error:
        sys.stderr.write(f"beckon_adapter: {error}\n")
        return 2
    return 0


def _run_adapter(words: CommandLine | None) -> None:
    tools = read_settings()
    settings = _adapter_settings()
    if words:
        more: dict[str, object] = {"mcp_servers": (words.server, *settings.mcp_servers)}
        settings = settings.model_copy(update=more)
    own = words.manifests if words else None
    if own is not None:
        if not own.is_dir():
            raise UsageError(f"--manifests {own}: there is no such folder")
        settings = settings.model_copy(update={"manifests": (own,)})
    # They log every URL, headers and messages, which hold arguments and credentials.
    for noisy in ("httpx2", "httpcore2", "mcp"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    logging.getLogger("mcp.client.stdio").setLevel(logging.CRITICAL)  # each line that is no message
    if any(name in os.environ or name.lower() in os.environ for name in _PROXIES):
        logger.warning("the proxy of the environment is not used: APIs are called directly")
    if not (settings.allowed_hosts or settings.manifests or settings.mcp_servers):
        logger.warning("no hosts are allowed, so every call is refused; set BECKON_ADAPTER_ALLOWED_HOSTS")
    server = words.server.name if words and own else ""
    app = new_app(
        settings, tools, lambda registry, allowed: _choose_source(settings, registry, allowed), server
    )
    run_app(app, "beckon-adapter", tools, redacted=True)  # the library of MCP would write them


def _choose_source(settings: AdapterSettings, registry: RuleRegistry, allowed: AllowedHosts) -> Source:
    if settings.manifests:
        from beckon_adapter.folders import FolderSource  # noqa: PLC0415 one of the two is needed

        return FolderSource(settings.manifests, registry, allowed)
    from beckon_adapter.cluster import ClusterSource  # noqa: PLC0415 costs memory and time
    from beckon_sources.api_client import connect  # noqa: PLC0415 costs memory and time

    try:
        return ClusterSource(asyncio.run(connect("beckon-adapter")), settings.namespaces, registry)
    except NotConfigured as error:
        raise UsageError(f"{error}, or set BECKON_MANIFESTS to folders") from None


def _adapter_settings() -> AdapterSettings:
    try:
        return AdapterSettings()
    except ValidationError as error:
        raise UsageError(setting_problems(_env_prefix(AdapterSettings), error)[0]) from None


def _env_prefix(settings: type[BaseSettings]) -> str:
    return settings.model_config.get("env_prefix", "")


if __name__ == "__main__":
    sys.exit(main())
