"""`beckon import mcp`: the tools of an MCP server, as EventTypes."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import httpx2
from cyclopts import Parameter

from beckon_adapter.mcp.authentication import SignedInAuth
from beckon_cli.commands.importing_flow import ImportTarget, ManifestOptions, ReportOptions, find_and_import
from beckon_cli.errors import CommandError
from beckon_cli.importing.candidates import ImportSource, Service, Tool
from beckon_cli.importing.mcp.project import (
    MANIFESTS,
    CommandOptions,
    CommandProject,
    make_project,
    recipe_of,
    refuse_odd_names,
    refuse_secrets,
)
from beckon_cli.importing.mcp.service import Bridge, cluster_service, local_service
from beckon_cli.importing.mcp.sign_in import BrowserSignIn
from beckon_cli.importing.mcp.tools import BearerToken, McpOptions, NoPlace, Place, find_tools
from beckon_cli.output import err


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class McpSelection:
    """Options for the tools, their names and their credentials."""

    select: Annotated[
        tuple[str, ...],
        Parameter(negative=(), help="A tool's name, with `*` for any text; may be given several times."),
    ] = ()
    name: Annotated[str, Parameter(help="The server's name, with which those of its tools begin.")] = ""
    credential: Annotated[str, Parameter(help="The adapter's credential to call a URL with.")] = ""
    token_file: Annotated[
        Path | None,
        Parameter(
            help="A file to read a URL's tools with: a bearer token, or a sign-in that --login writes."
        ),
    ] = None
    login: Annotated[
        bool, Parameter(negative=(), help="Sign in to a URL in a browser, by OAuth, to read its tools.")
    ] = False
    client_id: Annotated[
        str, Parameter(help="The id of a public OAuth client for --login; else one is registered.")
    ] = ""


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Image:
    """Options for a command: the project to run it in a cluster."""

    into: Annotated[
        Path | None,
        Parameter(help="Write a project into this folder: manifests, and an image that has the command."),
    ] = None
    env: Annotated[
        tuple[str, ...],
        Parameter(
            negative=(),
            help="A variable that the command gets: from the environment here, from a Secret in a cluster.",
        ),
    ] = ()
    secret: Annotated[str, Parameter(help="The Secret with these variables; else mcp-NAME.")] = ""
    image: Annotated[str, Parameter(help="The image's name; else dev.local/mcp-NAME:0.1.0.")] = ""
    base_image: Annotated[
        str, Parameter(help="An image made from Beckon's image of tools that has the command already.")
    ] = ""
    deployment: Annotated[
        bool, Parameter(negative=(), help="A Deployment and a Service in place of a Knative Service.")
    ] = False
    renew: Annotated[
        bool, Parameter(negative=(), help="Write the files of the project anew that you have changed, too.")
    ] = False


_WHICH, _WHERE, _HOW, _IMAGE = McpSelection(), ManifestOptions(), ReportOptions(), Image()


def mcp(
    *server: Annotated[str, Parameter(allow_leading_hyphen=True)],
    which: McpSelection = _WHICH,
    image: Image = _IMAGE,
    where: ManifestOptions = _WHERE,
    how: ReportOptions = _HOW,
) -> None:
    """Make EventTypes and Triggers of an MCP server's tools; `importing` has the words of its help.

    Parameters
    ----------
    server
        A URL, or a command that speaks MCP over its standard streams, after --.
    """
    place = _parse_place(server)
    _check_flags(place, where, image)
    if (which.login or which.client_id) and not (place.url and which.login):
        raise CommandError("--login is for a URL, and --client-id for --login", status=2)
    project = _project_target(place, where, image, how) if image.into else None
    if place.command and where.output:
        refuse_secrets(place.command)

    def service_of(name: str) -> Service:
        bridge = Bridge(name, where.namespace, plain=image.deployment, broker=where.broker)
        return cluster_service(bridge) if project else local_service(bridge, place.command)

    def found() -> ImportSource[Tool]:
        wanted = McpOptions(which.select, which.name, which.credential)
        try:
            if which.login:
                return _find_signed_in(place, which, wanted, service_of)
            if which.token_file:
                wanted = replace(wanted, auth=_read_auth(which.token_file))
            return find_tools(place, wanted, service_of)
        except NoPlace as error:
            raise CommandError(str(error), status=2) from None

    find_and_import(found, where, how, project)


def _find_signed_in(
    place: Place, which: McpSelection, wanted: McpOptions, service_of: Callable[[str], Service]
) -> ImportSource[Tool]:
    """Return the tools that a person who signs in may see; write the sign-in to `--token-file`."""
    with BrowserSignIn(place.url, which.client_id) as browser:
        source = find_tools(place, replace(wanted, auth=browser.auth), service_of)
    if which.token_file:
        sign_in = browser.result()
        if sign_in is None:
            err.print(f"{place} required no sign-in: {which.token_file} is not written")
        else:
            sign_in.write_to(which.token_file)
    return source


def _read_auth(file: Path) -> httpx2.Auth:
    """Return the authentication by a file: that of a sign-in, or a token alone."""
    try:
        text = file.read_text(encoding="utf-8").strip()
    except UnicodeDecodeError:
        raise CommandError(f"--token-file {file} is neither a token nor a sign-in", status=2) from None
    return SignedInAuth(file, f"the sign-in in {file}") if text.startswith("{") else BearerToken(text)


def _parse_place(server: Sequence[str]) -> Place:
    if not server:
        raise CommandError("name a server: beckon import mcp https://HOST/mcp, or -- COMMAND …", status=2)
    try:
        return Place.from_words(server)
    except NoPlace as error:
        raise CommandError(str(error), status=2) from None


def _check_flags(place: Place, where: ManifestOptions, image: Image) -> None:
    """Raise `CommandError` for contradictory flags or a missing variable."""
    if image != _IMAGE and not place.command:
        raise CommandError("--into, --env and the like are for a command; a URL runs elsewhere", status=2)
    if image.into and where.output:
        raise CommandError("--into writes a project and --output manifests alone; choose one", status=2)
    if not image.into and image != _IMAGE:
        raise CommandError(
            "--env, --secret, --image, --base-image, --deployment and --renew need --into", status=2
        )
    refuse_odd_names(image.env)
    if missing := [name for name in image.env if name not in os.environ]:
        raise CommandError(f"--env {missing[0]}: the environment here has none; export it first", status=2)


def _project_target(place: Place, where: ManifestOptions, image: Image, how: ReportOptions) -> ImportTarget:
    into = image.into or Path()
    # A path that cannot be written is reported before the server is started.
    recipe = None if how.diff else recipe_of(place.command, image.base_image)

    def make(source: ImportSource[Tool]) -> CommandProject:
        options = CommandOptions(image.image, image.base_image, image.env, image.secret, image.renew)
        bridge = Bridge(source.title, where.namespace, plain=image.deployment, broker=where.broker)
        return make_project(into, recipe or recipe_of(place.command, image.base_image), bridge, options)

    return ImportTarget(into / MANIFESTS, make)
