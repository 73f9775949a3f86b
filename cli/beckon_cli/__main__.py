"""The start of the command line: an interrupt prints no traceback.

This covers the imports as well, which happen inside the handler.
"""

import importlib
import sys


def main() -> None:
    """Run the command line; exit with 130 when interrupted."""
    try:
        importlib.import_module("beckon_cli.entry").main()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
