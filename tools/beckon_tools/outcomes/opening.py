"""The ledger at an address."""

import importlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from beckon_tools.errors import UsageError
from beckon_tools.outcomes.ledger import Ledger

# By the scheme: the extra of this package, the module of the ledger and its class.
_KINDS: Mapping[str, tuple[str, str]] = {
    "redis": ("redis", "RedisLedger"),
    "rediss": ("redis", "RedisLedger"),
    "unix": ("redis", "RedisLedger"),
    "postgresql": ("postgresql", "PostgresqlLedger"),
    "postgres": ("postgresql", "PostgresqlLedger"),
}


def open_ledger(url: str) -> Ledger:
    """Return the ledger at an address, not yet connected.

    Raises `UsageError` if the address is invalid or the driver is not installed.
    """
    kind = _KINDS.get(url.partition(":")[0])
    if kind is None:
        raise UsageError(
            "BECKON_TOOLS_REMEMBER_URL: write redis://host:6379/0 or postgresql://user@host/database"
        )
    extra, name = kind
    try:
        urlsplit(url)
        module = importlib.import_module(f"beckon_tools.outcomes.{extra}")
        ledger: Any = getattr(module, name)(url)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"BECKON_TOOLS_REMEMBER_URL: {error.name} is not installed; install beckon-tools[{extra}]"
        ) from None
    except ValueError:  # its text may hold the password
        raise UsageError("BECKON_TOOLS_REMEMBER_URL is no address that can be read") from None
    opened: Ledger = ledger
    return opened
