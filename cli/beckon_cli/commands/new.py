"""`beckon new`: projects ready to run."""

import shutil
import sys
from pathlib import Path

from cyclopts import App

from beckon_cli.output import out
from beckon_cli.projects import make_tool_project

new = App(name="new", help="Make a project that runs at once.")


@new.command
def tool(name: str, /) -> None:
    """Make a project for a tool: code, test, manifests, Dockerfile.

    Parameters
    ----------
    name
        The tool's name, and that of the folder that is made here: a-z, 0-9 and dashes, such as order-status.
    """
    made = make_tool_project(name, Path.cwd())
    out.print(f"made {name}: {', '.join(made.files)}")
    out.print()
    beckon = _beckon_command()
    out.print(f"Next:   cd {name} && {beckon} up --manifests manifests")
    out.print(f'        {beckon} ask "{made.question}"      (in another terminal)')


def _beckon_command() -> str:
    """Return the command to run `beckon` from any folder."""
    if shutil.which("beckon"):
        return "beckon"
    called = Path(sys.argv[0]).resolve()
    return str(called) if called.name == "beckon" else f"{sys.executable} -m beckon_cli"
