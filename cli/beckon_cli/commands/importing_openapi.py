"""`beckon import openapi`: the operations of an HTTP API, as EventTypes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from beckon_cli.commands.importing_flow import ManifestOptions, ReportOptions, find_and_import
from beckon_cli.errors import CommandError
from beckon_cli.importing.candidates import ImportSource, Tool
from beckon_cli.importing.openapi.finding import Reading, find_operations
from beckon_cli.importing.openapi.importer import OpenApiOptions
from beckon_cli.importing.openapi.openapi3 import ServerChoice
from beckon_cli.output import err


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class OpenApiSelection:
    """Options for selecting, naming and calling the operations."""

    select: Annotated[
        tuple[str, ...],
        Parameter(
            negative=(),
            help="A method, a path (`/pets/*`), tag:NAME, an operationId or a name, with `*` for any text; "
            "may be given several times. `GET /pets/*` is both.",
        ),
    ] = ()
    prefix: Annotated[str, Parameter(help="What all names begin with, such as petstore.")] = ""
    server: Annotated[
        str, Parameter(help="The URL that all paths follow, or the number of one that --list shows.")
    ] = ""
    server_variable: Annotated[
        tuple[str, ...], Parameter(negative=(), help="NAME=VALUE for a variable of the server's URL.")
    ] = ()
    credential: Annotated[
        str, Parameter(help="The adapter's credential to call with; its name comes from the API's otherwise.")
    ] = ""
    argument: Annotated[
        tuple[str, ...],
        Parameter(
            negative=(), help="A parameter that looks like a key or token and is an argument all the same."
        ),
    ] = ()
    set_: Annotated[
        tuple[str, ...],
        Parameter(
            name="--set",
            negative=(),
            help="NAME=VALUE for a parameter that always has this value, and no other.",
        ),
    ] = ()
    root: Annotated[
        Path | None, Parameter(help="The folder that references of a file may not leave; its own otherwise.")
    ] = None


_WHICH, _WHERE, _HOW = OpenApiSelection(), ManifestOptions(), ReportOptions()


def openapi(
    source: str,
    /,
    *,
    which: OpenApiSelection = _WHICH,
    where: ManifestOptions = _WHERE,
    how: ReportOptions = _HOW,
) -> None:
    """Make EventTypes, Triggers and rules of an API's description; `importing` has the words of its help.

    Parameters
    ----------
    source
        A file or a URL.
    """
    find_and_import(lambda: _find_operations(source, which), where, how)


def _find_operations(source: str, which: OpenApiSelection) -> ImportSource[Tool]:
    if which.server and not which.server.isdecimal() and "://" not in which.server:
        raise CommandError(
            f"--server {which.server!r} is neither https://HOST/PATH nor a number that --list shows", status=2
        )
    fixed = dict(_parse_pair("--set", each) for each in which.set_)
    options = OpenApiOptions(which.prefix, which.credential, frozenset(which.argument), fixed)
    variables = dict(_parse_pair("--server-variable", each) for each in which.server_variable)
    choice = ServerChoice(which.server.rstrip("/"), variables)
    reading = Reading(which.root, lambda line: err.print(Text(line)))
    return find_operations(source, which.select, options, choice, reading)


def _parse_pair(flag: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise CommandError(f"{flag} {text!r} is not NAME=VALUE", status=2)
    return name, value
