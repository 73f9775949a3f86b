"""The first lines of `beckon`: whatever is interrupted, the imports included, ends without a trace."""

import importlib
import sys


def main() -> None:
    """Run `beckon`; 130 when interrupted."""
    try:
        importlib.import_module("beckon_cli.entry").main()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
