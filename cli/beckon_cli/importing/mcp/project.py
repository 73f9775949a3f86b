"""The project of an MCP server's command: its image and Service."""

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

from rich.text import Text

from beckon_cli.errors import CommandError
from beckon_cli.importing.files import SUFFIX
from beckon_cli.importing.mcp.recipe import Recipe, Runtime
from beckon_cli.importing.mcp.service import Bridge, Running, knative_service, plain_service, sink_binding
from beckon_tools.shipped import DEFAULT_IMAGE

MANIFESTS = "manifests"


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """The user's options for the image: its name, base and secrets.

    `environment` names the variables that the server gets from the Secret `secret`. With `renew`, files
    that differ are written anew, too.
    """

    image: str = ""
    base_image: str = ""
    environment: Sequence[str] = ()
    secret: str = ""
    renew: bool = False


@dataclass(frozen=True, slots=True)
class CommandProject:
    """The outcome: files written, files left alone, next steps, unknowns.

    The files in `left_alone` were changed by their owner.
    """

    made: tuple[str, ...]
    left_alone: tuple[str, ...]
    next: tuple[str, ...]
    unknown: tuple[str, ...]

    def document(self) -> dict[str, object]:
        """Return the outcome as a JSON document, for programs."""
        return asdict(self)

    def lines(self) -> Iterator[Text]:
        """Yield the outcome as lines, for people."""
        for name in self.made:
            yield Text(f"added    {name}")
        for name in self.left_alone:
            said = f"{name}: yours differs; --renew writes it anew"
            yield Text.assemble(("kept     ", "yellow"), said)
        for each in self.unknown:
            yield Text.assemble(("to do    ", "yellow"), each)
        for number, line in enumerate(self.next):
            yield Text(f"{'Next:' if number == 0 else '':<8}{line}")


def make_project(folder: Path, recipe: Recipe, bridge: Bridge, options: CommandOptions) -> CommandProject:
    """Write the missing files of a project folder.

    A file that differs belongs to its owner and is left alone, unless `options.renew` is set.
    """
    image = options.image or f"dev.local/{bridge.service}:0.1.0"
    secret = options.secret or bridge.service
    running = Running(image, recipe.command, recipe.typed, options.environment, secret)
    made, left_alone = [], []
    for name, text in _files(recipe, bridge, running, options.base_image).items():
        path = folder / name
        before = path.read_text(encoding="utf-8") if path.exists() else None
        if before is None or (options.renew and before != text):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            made.append(name)
        elif before != text:
            left_alone.append(name)
    return CommandProject(
        tuple(made), tuple(left_alone), tuple(_next_commands(folder, running, bridge)), recipe.unknown
    )


def refuse_odd_names(environment: Sequence[str]) -> None:
    """Raise `CommandError` for an invalid variable name."""
    for name in environment:
        if not name.isidentifier() or not name.isascii():
            shown = name.partition("=")[0][:60]
            raise CommandError(
                f"--env {shown}: write the name of a variable alone; its value comes from the environment "
                "here, and from a Secret in a cluster",
                status=2,
            )


def _files(recipe: Recipe, bridge: Bridge, running: Running, base_image: str) -> dict[str, str]:
    values = {
        "name": bridge.server,
        "service": bridge.service,
        "file": f"{bridge.service}{SUFFIX}",
        "base": base_image or DEFAULT_IMAGE,
        "image": running.image,
        "program": shlex.quote(recipe.command[0]),
        "words": json.dumps(running.adapter_arguments(bridge.server)),
        "secret_line": "".join(f"$ {line}\n" for line in _secret_command(running, bridge)),
    }
    service = plain_service if bridge.plain else knative_service
    made = {
        "Dockerfile": _filled(f"Dockerfile.{recipe.runtime}", values),
        ".dockerignore": _filled("dockerignore", values),
        "README.md": _filled("README.md", values),
        f"{MANIFESTS}/service.yaml": service(running, bridge),
        f"{MANIFESTS}/sinkbinding.yaml": sink_binding(bridge),
    }
    if recipe.runtime is not Runtime.GIVEN:
        made |= {f"server/{name}": text for name, text in recipe.files.items()}
    return made


def _filled(name: str, values: dict[str, str]) -> str:
    template = files("beckon_cli") / "templates" / "mcp" / f"{name}.in"
    return Template(template.read_text(encoding="utf-8")).substitute(values)


def _next_commands(folder: Path, running: Running, bridge: Bridge) -> Iterator[str]:
    yield f"cd {shlex.quote(str(folder))} && beckon up --manifests {MANIFESTS}"
    yield f"docker build --tag {running.image} {shlex.quote(str(folder))}"
    yield from _secret_command(running, bridge)
    yield f"kubectl apply -f {shlex.quote(str(folder / MANIFESTS))}"


def _secret_command(running: Running, bridge: Bridge) -> Iterator[str]:
    """Yield the kubectl command for the Secret, if there are variables.

    Their values come from the environment here.
    """
    if running.environment:
        where = f" --namespace {bridge.namespace}" if bridge.namespace else ""
        values = " ".join(f'--from-literal={name}="${name}"' for name in running.environment)
        yield f"kubectl create secret generic {running.secret}{where} {values}"
