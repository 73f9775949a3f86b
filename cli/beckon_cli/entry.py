"""The entry of `beckon`: command parsing, one-line errors, exit statuses."""

import sys
from inspect import cleandoc

from cyclopts import App, CycloptsError, Parameter, UnusedCliTokensError

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

# What runs each command, and the help above its parameters. A command's module is imported
# when that command runs, so its words stand here; the first line is that of the function's docstring.
_COMMANDS = {
    "up": ("up:up", "Start the local platform, and keep it running until Ctrl-C."),
    "ask": (
        "ask:ask",
        """Ask one question; print the answer and the tool calls that led to it.

        Starts the platform for as long as it takes, where none is running.
        """,
    ),
    "chat": ("ask:chat", "Talk with the agent on the terminal; answers stream as they are written."),
    "tools": ("tools:tools", "Print the catalogue as the model sees it, and what was refused and why."),
    "call": (
        "call:call",
        """Call a tool through the broker, without a model; print its result as JSON.

        For instance: beckon call calculator expression="17% of 2340"
        """,
    ),
    "check": (
        "check:check",
        """Say what is wrong with EventTypes, Triggers and Agents, what each becomes, and what has no route.

        Exits with 1 where something is wrong; warnings alone are no reason to.
        """,
    ),
    "manifest": (
        "new:manifest",
        """Print a tool's EventType, Trigger and Knative Service.

        For instance: beckon manifest order_status:order_status | kubectl apply -f -
        """,
    ),
    "runs": ("runs:runs", "List the runs that are stored, the newest first: ids for `beckon replay`."),
    "approvals": (
        "runs:approvals",
        "List the calls that wait for a person: ids for `beckon approve`.",
    ),
    "approve": (
        "runs:approve",
        """Allow the calls that a response waits with, and print what follows.

        Each call is decided about once: a second word that says otherwise is refused. The id of a single
        approval decides about its call alone, and does not wait for what follows.
        """,
    ),
    "inputs": ("inputs:inputs", "List the forms that tools put to you: ids and fields for `beckon answer`."),
    "answer": (
        "inputs:answer",
        """Fill in the form of a tool; its run goes on with the answer.

        For instance: beckon answer inreq_0123… size=7
        """,
    ),
    "replay": (
        "runs:replay",
        """Play a stored run again, with the model's answers and the results of its calls as recorded.

        The model gets no request. Exits with 0 where everything is the same byte for byte, 1 where something
        differs, and 2 where there is no replay: no such run, or one that has not ended.
        """,
    ),
    "new": ("new:new", "Make a project that runs at once."),
    "keys": ("keys:keys", "Make, list and revoke API keys; the agent keeps their hashes in a file."),
    "probe": ("probe:probe", "Try how a Broker treats tool calls."),
}

_OPENAPI_HELP = """Make EventTypes, Triggers and rules for the HTTP adapter of an API's OpenAPI description.

For instance:

```
beckon import openapi petstore.yaml --select "GET /pets/**" --output manifests
```

Swagger 2 and OpenAPI 3, YAML or JSON. What cannot be a tool is skipped with its reason. Importing
again replaces the files that it has written before, and no others.
"""
_MCP_HELP = """Make EventTypes and Triggers of an MCP server's tools; their calls go through the bridge.

For instance:

```
beckon import mcp https://mcp.example.com/mcp --output manifests
beckon import mcp --name time --into time -- uvx mcp-server-time
```

The second writes an image for a cluster as well. What cannot be a tool is skipped with its reason.
Importing again replaces the files that it has written before, and no others.
"""
_A2A_HELP = """Make EventTypes and Triggers of an A2A agent's skills; their calls are messages to the agent.

For instance:

```
beckon import a2a https://agents.example.com/travel --output manifests
```

Importing again replaces the files that it has written before, and no others.
"""


def _version() -> str:
    from importlib.metadata import version  # noqa: PLC0415  # a tenth of a second, for --version alone

    return version("beckon-cli")


app = App(
    name="beckon",
    help=_HELP,
    version=_version,
    help_format="markdown",
    # Most defaults are nothing; the help of the others names them.
    default_parameter=Parameter(show_default=False),
)


for _name, (_target, _help) in _COMMANDS.items():
    app.command(f"beckon_cli.commands.{_target}", name=_name, help=cleandoc(_help))

_import = App(name="import", help="Make tools of what exists already, without code.")
_import.command("beckon_cli.commands.importing_openapi:openapi", name="openapi", help=_OPENAPI_HELP)
_import.command("beckon_cli.commands.importing_mcp:mcp", name="mcp", help=_MCP_HELP)
_import.command("beckon_cli.commands.importing_a2a:a2a", name="a2a", help=_A2A_HELP)
app.command(_import)


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
    """Return the usage error in one line, with the command for help."""
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
