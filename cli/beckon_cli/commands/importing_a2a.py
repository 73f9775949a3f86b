"""`beckon import a2a`: the skills of an A2A agent, as EventTypes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from beckon_cli.commands.importing_flow import ManifestOptions, ReportOptions, find_and_import
from beckon_cli.errors import CommandError
from beckon_cli.importing.a2a import WantedSkills, find_skills
from beckon_cli.importing.candidates import ImportSource, Tool
from beckon_contract.catalogue.annotations import parse_timeout


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class A2aSelection:
    """Options for the skills, their names and their credentials."""

    select: Annotated[
        tuple[str, ...],
        Parameter(negative=(), help="A skill's id, with `*` for any text; may be given several times."),
    ] = ()
    name: Annotated[str, Parameter(help="The agent's name, with which those of its skills begin.")] = ""
    credential: Annotated[str, Parameter(help="The adapter's credential to call the agent with.")] = ""
    timeout: Annotated[str, Parameter(help="How long a call may take, such as 90s or 10m; else 5m.")] = "5m"
    token_file: Annotated[
        Path | None, Parameter(help="A file with the bearer token to read the card with.")
    ] = None


_WHICH, _WHERE, _HOW = A2aSelection(), ManifestOptions(), ReportOptions()


def a2a(
    url: str, /, *, which: A2aSelection = _WHICH, where: ManifestOptions = _WHERE, how: ReportOptions = _HOW
) -> None:
    """Make EventTypes and Triggers of an A2A agent's skills; `importing` has the words of its help.

    Parameters
    ----------
    url
        The URL of the agent, or of its card.
    """
    try:
        parse_timeout(which.timeout)
    except ValueError as error:
        raise CommandError(f"--timeout: {error}", status=2) from None

    def find() -> ImportSource[Tool]:
        token = which.token_file.read_text(encoding="utf-8").strip() if which.token_file else ""
        return find_skills(
            url, WantedSkills(which.select, which.name, which.credential, which.timeout, token)
        )

    find_and_import(find, where, how)
