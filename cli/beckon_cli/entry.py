"""The entry of `beckon`: command parsing, one-line errors, exit statuses."""

import sys
from inspect import cleandoc

from cyclopts import App, CycloptsError, Parameter, UnusedCliTokensError

from beckon_cli.errors import CommandError
from beckon_runtime.terminal import printable

_HELP = """
Make the services of a Knative cluster callable by a language model.

An EventType describes a tool, a Trigger routes its calls. On this machine the whole path
runs with no cluster and no key:

```
beckon up                              start broker, shim, agent and tools
beckon ask "What is 17% of 2340?"      ask a question; see its tool calls
beckon tools --manifests FOLDER        what the model would see
beckon check FOLDER                    what is wrong with manifests
beckon new tool NAME                   a project with a tool of your own
```

Settings come from flags, the environment, or a .env file, by the same names.
"""

# What runs each command, and the help above its parameters. A command's module is imported
# when that command runs, so its help is here; the first line is that of the function's docstring.
_COMMANDS = {
    "up": ("up:up", "Start the local platform, and keep it running until Ctrl-C."),
    "ask": (
        "ask:ask",
        """Ask one question; print the answer and its tool calls.

        Starts the platform for this question if none is running.
        """,
    ),
    "chat": ("ask:chat", "Chat with the agent on the terminal; answers are streamed."),
    "tools": ("tools:tools", "Print the tools as the model sees them, and the refused ones with reasons."),
    "call": (
        "call:call",
        """Call a tool through the broker, without a model; print its result as JSON.

        For instance: beckon call calculator expression="17% of 2340"
        """,
    ),
    "check": (
        "check:check",
        """Check EventTypes, Triggers and Agents: errors, the tools they become, and calls without a route.

        Exits with 1 if there are errors; warnings alone exit with 0.
        """,
    ),
    "manifest": (
        "new:manifest",
        """Print a tool's EventType, Trigger and Knative Service.

        For instance: beckon manifest order_status:order_status | kubectl apply -f -
        """,
    ),
    "runs": ("runs:runs", "List stored runs, newest first, with their ids for `beckon replay`."),
    "approvals": (
        "runs:approvals",
        "List calls waiting for approval, with their ids for `beckon approve`.",
    ),
    "approve": (
        "runs:approve",
        """Approve the calls a response waits for, and print how it continues.

        Each call is decided once; a different second decision is refused. With the id of a single approval,
        only its call is decided, and the command does not wait for the rest.
        """,
    ),
    "inputs": (
        "inputs:inputs",
        "List forms waiting for input, with their ids and fields for `beckon answer`.",
    ),
    "answer": (
        "inputs:answer",
        """Fill in a tool's form; its run continues with the answer.

        For instance: beckon answer inreq_0123… size=7
        """,
    ),
    "replay": (
        "runs:replay",
        """Replay a stored run with its recorded model answers and tool results.

        Sends nothing to the model. Exits with 0 if everything is the same byte for byte, with 1 if something
        differs, and with 2 if there is no replay: no such run, or one that has not ended.
        """,
    ),
    "new": ("new:new", "Create a project that runs at once."),
    "keys": ("keys:keys", "Create, list and revoke API keys; the agent reads their hashes from a file."),
    "probe": ("probe:probe", "Test how a Broker handles tool calls."),
}

_OPENAPI_HELP = """Make EventTypes, Triggers and rules for the HTTP adapter of an API's OpenAPI description.

For instance:

```
beckon import openapi petstore.yaml --select "GET /pets/**" --output manifests
```

Swagger 2 and OpenAPI 3, YAML or JSON. What cannot be a tool is skipped with a reason. A second
import replaces the files of the first, and no others.
"""
_MCP_HELP = """Make EventTypes and Triggers of an MCP server's tools; their calls go through the bridge.

For instance:

```
beckon import mcp https://mcp.example.com/mcp --output manifests
beckon import mcp --name time --into time -- uvx mcp-server-time
```

The second writes an image for a cluster as well. What cannot be a tool is skipped with a reason.
A second import replaces the files of the first, and no others.
"""
_A2A_HELP = """Make EventTypes and Triggers of an A2A agent's skills; their calls are messages to the agent.

For instance:

```
beckon import a2a https://agents.example.com/travel --output manifests
```

A second import replaces the files of the first, and no others.
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

_import = App(name="import", help="Make tools of existing APIs, MCP servers and A2A agents, without code.")
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
        problem = f"{command} takes no {' '.join(map(repr, error.unused_tokens or ()))}"
    else:
        problem = _one_line(error).rstrip(".")
    return f"{problem} ({command} --help teaches)"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _fail(message: str, status: int) -> None:
    print(f"beckon: {printable(message)}", file=sys.stderr)
    sys.exit(status)
