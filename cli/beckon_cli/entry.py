"""The entry of `beckon`: words to commands, failures to one line and an exit status."""

import sys
from importlib.metadata import version

from cyclopts import App, CycloptsError, Parameter, UnusedCliTokensError

from beckon_cli.commands.approve import approve
from beckon_cli.commands.ask import ask, chat
from beckon_cli.commands.call import call
from beckon_cli.commands.check import check
from beckon_cli.commands.keys import keys
from beckon_cli.commands.manifest import manifest
from beckon_cli.commands.new import new
from beckon_cli.commands.replay import replay
from beckon_cli.commands.runs import approvals, runs
from beckon_cli.commands.tools import tools
from beckon_cli.commands.up import up
from beckon_cli.errors import CommandError

_HELP = """
Make the services of a Knative cluster callable by a language model.

An EventType describes a tool, a Trigger routes its calls. On this machine the whole way
runs with no cluster and no key:

```
beckon up                              start broker, shim, agent and tools
beckon ask "What is 17% of 2340?"      a question, and the calls it took
beckon tools --manifests FOLDER        what the model would see
beckon check FOLDER                    what is wrong with manifests
beckon new tool NAME                   a project with a tool of your own
```

Settings come from flags, the environment, or a .env file, by the same names.
"""

app = App(
    name="beckon",
    help=_HELP,
    version=version("beckon-cli"),
    help_format="markdown",
    # Most defaults are nothing; the help of the others tells them.
    default_parameter=Parameter(show_default=False),
)


for command in (up, ask, chat, tools, call, check, manifest, runs, approvals, approve, replay):
    app.command(command)
app.command(new)
app.command(keys)
# Loaded when it is asked for: it knows all that the HTTP adapter does.
app.command(
    "beckon_cli.commands.importing:import_tools",
    name="import",
    help="Make tools of what exists already, without code.",
)


def main() -> None:
    """Run `beckon`; exit with 0, 1 for a failure, 2 for wrong use, 130 when interrupted."""
    try:
        app(print_error=False, exit_on_error=False, result_action="return_none")
    except CycloptsError as error:
        _fail(_complaint(error), 2)
    except CommandError as error:
        _fail(str(error), error.status)
    except BrokenPipeError:
        sys.exit(0)  # the reader, `head` for instance, has seen enough


def _complaint(error: CycloptsError) -> str:
    """Return what is wrong with the words that were typed, and where to read on."""
    command = " ".join(("beckon", *(error.command_chain or ())))
    if isinstance(error, UnusedCliTokensError):
        said = f"{command} takes no {' '.join(map(repr, error.unused_tokens or ()))}"
    else:
        said = _one_line(error).rstrip(".")
    return f"{said} ({command} --help teaches)"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _fail(message: str, status: int) -> None:
    print(f"beckon: {message}", file=sys.stderr)
    sys.exit(status)
