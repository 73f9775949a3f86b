"""`beckon new` and `beckon manifest`: the project of a new tool, and a tool's manifests."""

import keyword
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import packages_distributions
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template
from typing import Annotated

from cyclopts import App, Parameter

from beckon_cli.errors import CommandError
from beckon_cli.output import out, own_command
from beckon_tools.command import find_tool
from beckon_tools.errors import UsageError
from beckon_tools.manifests import Placement, save_manifests, write_manifests
from beckon_tools.settings import Settings
from beckon_tools.shipped import DEFAULT_IMAGE

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LONGEST = 50  # a Service's name has 63 characters at most, and Knative adds to it
_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Project:
    """The new project: its folder, files and a sample question.

    `files` are names in the folder. The question makes a model call the tool.
    """

    folder: Path
    files: tuple[str, ...]
    question: str


def make_tool_project(name: str, where: Path) -> Project:
    """Make the folder of a new project with a working tool.

    The folder is `where/name`. Raises `CommandError`; a folder for which no manifests can be made is
    removed again.
    """
    module = _module_name(name)
    words = name.replace("-", " ")
    values = {
        "name": name,
        "module": module,
        "type": name.replace("-", "."),
        "words": words,
        "question": f"What is the {words} of 1001?",
        "base": DEFAULT_IMAGE,
        "image": f"dev.local/{name}:0.1.0",
    }
    folder = where / name
    try:
        folder.mkdir()
        _write_project(folder, values)
        _make_manifests(folder, values)
    except FileExistsError:
        raise CommandError(f"{name} is there already; choose another name, or remove it", status=2) from None
    except OSError as error:
        raise CommandError(f"cannot write to {folder}: {error.strerror}") from None
    files = sorted(str(path.relative_to(folder)) for path in folder.iterdir())
    return Project(folder, tuple(files), values["question"])


def _module_name(name: str) -> str:
    """Return the name of the tool's module; raise `CommandError` if invalid."""
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise CommandError(
            f"{name[:80]!r} is no name for a tool; write at most {_LONGEST} of a-z, 0-9 and single dashes, "
            "a letter first: order-status",
            status=2,
        )
    module = name.replace("-", "_")
    if keyword.iskeyword(module) or module in sys.stdlib_module_names or module in packages_distributions():
        raise CommandError(f"Python has a {module} already; choose another name, such as my-{name}", status=2)
    return module


def _write_project(folder: Path, values: Mapping[str, str]) -> None:
    for template in _iterate_templates():
        text = Template(template.read_text(encoding="utf-8")).substitute(values)
        (folder / _file_name(template.name, values["module"])).write_text(text, encoding="utf-8")


def _iterate_templates() -> Iterator[Traversable]:
    for each in (files("beckon_cli") / "templates" / "tool").iterdir():
        if each.name.endswith(".in"):
            yield each


def _file_name(template: str, module: str) -> str:
    """Return the file name of a template in the new project.

    The template itself has another name, so that no development tool takes it for a file of this project.
    """
    name = template.removesuffix(".in")
    return {"tool.py": f"{module}.py", "test_tool.py": f"test_{module}.py", "gitignore": ".gitignore"}.get(
        name, name
    )


def _make_manifests(folder: Path, values: Mapping[str, str]) -> None:
    """Make the manifests as their author will.

    This proves that the tool can be imported there. If it cannot, removes the folder and raises
    `CommandError`.
    """
    reference = f"{values['module']}:{values['module']}"
    command = ("-m", "beckon_tools", "manifest", reference, "--image", values["image"])
    completed = subprocess.run(  # noqa: S603 our own program, and a name that was checked
        [sys.executable, *command, "--output", "manifests"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if completed.returncode:
        shutil.rmtree(folder)
        raise CommandError(f"the new tool has no manifests: {completed.stderr.strip()}")
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)


new = App(name="new", help="Create a project that runs at once.")


@new.command
def tool(name: str, /) -> None:
    """Create a project for a tool: code, test, manifests, Dockerfile.

    Parameters
    ----------
    name
        The tool's name, and that of the folder that is made here: a-z, 0-9 and dashes, such as order-status.
    """
    project = make_tool_project(name, Path.cwd())
    out.print(f"made {name}: {', '.join(project.files)}")
    out.print()
    beckon = own_command(from_any_folder=True)
    out.print(f"Next:   cd {name} && {beckon} up --manifests manifests")
    out.print(f'        {beckon} ask "{project.question}"      (in another terminal)')


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class ClusterPlace:
    """Options for the place of a tool in a cluster."""

    namespace: Annotated[
        str | None, Parameter(help="The namespace; without this, that of kubectl's context.")
    ] = None
    broker: Annotated[str, Parameter(help="The Broker of the Trigger; else default.")] = "default"
    dead_letters: Annotated[
        str, Parameter(help="The URL of a dead-letter sink, for a Broker that has none of its own.")
    ] = ""


_PLACE = ClusterPlace()


def manifest(
    tool: str,
    /,
    *,
    image: str = DEFAULT_IMAGE,
    deployment: Annotated[bool, Parameter(negative=())] = False,
    place: ClusterPlace = _PLACE,
    output: Path | None = None,
) -> None:
    """Print a tool's EventType, Trigger and Knative Service.

    For instance: beckon manifest order_status:order_status | kubectl apply -f -

    Parameters
    ----------
    tool
        MODULE:FUNCTION, looked for in this folder first; or the name of a tool that ships.
    image
        The container image of the Service; else Beckon's own, with the tools that ship.
    deployment
        A Deployment and a Service in place of a Knative Service.
    output
        Write a file each into this folder, instead of printing.
    """
    try:
        placement = Placement(
            tool, image, place.broker, place.namespace, place.dead_letters, plain=deployment
        )
        manifests = write_manifests(find_tool(tool, Settings.model_construct()), placement)
        if output is None:
            print("".join(manifests.values()), end="")
        else:
            save_manifests(manifests, output)
    except UsageError as error:
        raise CommandError(str(error), status=2) from None
