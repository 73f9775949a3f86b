"""The composition root: logging, settings from the environment, the command, the exit code."""

import logging.config
import sys

from pydantic import ValidationError

from beckon_runtime.logs import log_config
from beckon_runtime.settings import setting_problems
from beckon_runtime.tracing import log_fields
from beckon_tools.command import run_command
from beckon_tools.errors import UsageError
from beckon_tools.settings import Settings


def main() -> int:
    """Run the command line; return 2 for an invalid command or setting."""
    try:
        run_command(sys.argv[1:], read_settings)
    except UsageError as error:
        sys.stderr.write(f"beckon_tools: {error}\n")
        return 2
    return 0


def read_settings() -> Settings:
    """Return the settings, with logging set up; raise `UsageError` for an invalid one."""
    try:
        settings = Settings()
    except ValidationError as error:
        raise UsageError(setting_problems("BECKON_TOOLS_", error)[0]) from None
    readable = sys.stderr.isatty()
    logging.config.dictConfig(
        log_config("tool", readable=readable, level=settings.log_level, fields=log_fields)
    )
    return settings


if __name__ == "__main__":
    sys.exit(main())
