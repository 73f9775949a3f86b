"""The entry of `beckon`: words to commands, failures to one line and an exit status."""

import sys
from importlib.metadata import version

from cyclopts import App, CycloptsError

from beckon_cli.commands.approve import approve
from beckon_cli.commands.ask import ask, chat
from beckon_cli.commands.call import call
from beckon_cli.commands.check import check
from beckon_cli.commands.keys import keys
from beckon_cli.commands.replay import replay
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
```

Settings come from flags, the environment, or a .env file, by the same names.
"""

app = App(name="beckon", help=_HELP, version=version("beckon-cli"), help_format="markdown")


for command in (up, ask, chat, tools, call, check, approve, replay):
    app.command(command)
app.command(keys)


def main() -> None:
    """Run `beckon`; exit with 0, 1 for a failure, 2 for wrong use, 130 when interrupted."""
    try:
        app(print_error=False, exit_on_error=False, result_action="return_none")
    except CycloptsError as error:
        _fail(f"{_one_line(error)} (beckon --help teaches)", 2)
    except CommandError as error:
        _fail(str(error), error.status)
    except BrokenPipeError:
        sys.exit(0)  # the reader, `head` for instance, has seen enough


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _fail(message: str, status: int) -> None:
    print(f"beckon: {message}", file=sys.stderr)
    sys.exit(status)
