"""The command line of the SDK: find a tool by its name or module:attribute, serve it, print its manifests."""

import argparse
import difflib
import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from beckon_tools.declaration import AnyTool, Tool
from beckon_tools.errors import DeclarationError, UsageError
from beckon_tools.server import run_tool
from beckon_tools.settings import Settings
from beckon_tools.shipped import DEFAULT_IMAGE, SHIPPED


def find_tool(name: str, settings: Settings) -> AnyTool:
    """Return the tool of this name; raise `UsageError` if there is none.

    `module:attribute` names a tool, or a function that takes the settings and returns one.
    """
    reference = SHIPPED.get(name.replace(".", "-"), name)
    if ":" not in reference:
        near = difflib.get_close_matches(name, SHIPPED, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the shipped tools are {', '.join(SHIPPED)}"
        raise UsageError(f"there is no tool {name!r}; {hint} (your own: module:attribute)")
    return _load_tool(reference, settings)


def _load_tool(reference: str, settings: Settings) -> AnyTool:
    module_name, _, attribute = reference.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)  # a new tool is in its author's working directory
    try:
        tool = getattr(importlib.import_module(module_name), attribute)
        if _is_builder(tool):
            tool = tool(settings)
    except DeclarationError as error:
        raise UsageError(f"{reference} is no tool yet: {error}") from None
    except ModuleNotFoundError as error:
        where = f"; it is looked for in {here} first" if error.name == module_name else ""
        raise UsageError(f"{reference} cannot be imported: {error}{where}") from None
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"{reference} cannot be imported: {error}") from None
    if not isinstance(tool, Tool):
        raise UsageError(f"{reference} is no tool; declare it with @tool(type=…)")
    return tool


def _is_builder(attribute: object) -> bool:
    """Return True for a plain function of one argument, the settings."""
    if not inspect.isfunction(attribute) or inspect.iscoroutinefunction(attribute):
        return False
    return len(inspect.signature(attribute).parameters) == 1


_NAME_HELP = "a shipped tool (see `list`), or module:attribute of your own"
_EXAMPLES = """\
examples:
  python -m beckon_tools list
  python -m beckon_tools serve calculator --port 8081
  python -m beckon_tools manifest my_tools:shorten --image registry.example/my-tools:1 | kubectl apply -f -

Every setting is an environment variable BECKON_TOOLS_…; PORT is Knative's.
"""


class _Parser(argparse.ArgumentParser):
    """A parser with one-line errors."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


def run_command(arguments: Sequence[str], settings: Callable[[], Settings]) -> None:
    """Run one command; raise `UsageError` if it is invalid."""
    options = _make_parser().parse_args(arguments)
    match options.verb:
        case "list":
            sys.stdout.write(_list_tools(settings()))
        case "manifest":
            _print_manifests(options, settings())
        case _:
            flags = {name: getattr(options, name) for name in ("host", "port")}
            chosen = {name: value for name, value in flags.items() if value is not None}
            final = settings().model_copy(update=chosen)
            run_tool(find_tool(options.name, final), final)


def _make_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m beckon_tools",
        description="Tools for Beckon: CloudEvents services that a language model can call.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    verbs.add_parser("list", help="the tools that ship, with the type of event each answers")
    serve = verbs.add_parser("serve", help="serve one tool over HTTP until SIGTERM")
    serve.add_argument("name", metavar="NAME", help=_NAME_HELP)
    serve.add_argument("--host", help="address to listen on (default 127.0.0.1)")
    serve.add_argument("--port", type=_parse_port, help="port, 0 for any free one (default $PORT or 8080)")
    manifest = verbs.add_parser("manifest", help="print a tool's EventType, Trigger and Knative Service")
    manifest.add_argument("name", metavar="NAME", help=_NAME_HELP)
    manifest.add_argument("--image", default=DEFAULT_IMAGE, help="container image (default %(default)s)")
    manifest.add_argument("--namespace", help="namespace (default: that of kubectl's context)")
    manifest.add_argument("--broker", default="default", help="Broker of the Trigger (default %(default)s)")
    manifest.add_argument(
        "--dead-letters", metavar="URL", default="", help="dead-letter sink, for a Broker that has none"
    )
    manifest.add_argument(
        "--deployment", action="store_true", help="a Deployment and a Service in place of a Knative Service"
    )
    manifest.add_argument(
        "--output", metavar="FOLDER", type=Path, help="write a file each, instead of printing"
    )
    return parser


def _parse_port(text: str) -> int:
    if text.isdecimal() and int(text) <= 65535:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no port; give a number from 0 to 65535")


def _list_tools(settings: Settings) -> str:
    tools = [find_tool(name, settings) for name in SHIPPED]
    width = max(len(tool.service) for tool in tools)
    type_width = max(len(tool.type) for tool in tools)
    return "".join(
        f"{tool.service:{width}}  {tool.type:{type_width}}  {tool.description}\n" for tool in tools
    )


def _print_manifests(options: argparse.Namespace, settings: Settings) -> None:
    # Imported late: a tool that serves writes no YAML.
    from beckon_tools.manifests import Placement, save_manifests, write_manifests  # noqa: PLC0415  # see above

    placement = Placement(
        options.name,
        options.image,
        options.broker,
        options.namespace,
        options.dead_letters,
        plain=options.deployment,
    )
    manifests = write_manifests(find_tool(options.name, settings), placement)
    if options.output is None:
        sys.stdout.write("".join(manifests.values()))
    else:
        save_manifests(manifests, options.output)
