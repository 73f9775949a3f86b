"""The project of an MCP server started by a command: its image, with the recipe for the command.

A recipe has the packages to install there, and the command to run.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from string import Template
from urllib.parse import urlsplit

from rich.text import Text

from beckon_cli.errors import CommandError
from beckon_cli.importing.manifests import SUFFIX
from beckon_cli.importing.mcp import packages
from beckon_cli.importing.mcp.service import Bridge, Running, knative_service, plain_service, sink_binding
from beckon_tools.shipped import DEFAULT_IMAGE

SERVER = "/srv/server"
"""The path of the server in the image."""

_NPX_FLAGS = frozenset({"-y", "--yes", "-q", "--quiet", "--no", "--no-install", "--prefer-offline", "--"})
_UV_FLAGS = frozenset({"-q", "--quiet", "--isolated", "--offline", "--refresh", "-n", "--no-cache"})
_UV_VALUES = frozenset({"--with", "-w", "--from", "--spec", "--python", "-p", "--index", "--index-url"})
_CONTAINERS = frozenset({"docker", "podman", "nerdctl"})
_PYTHON = re.compile(r"python(\d+(\.\d+)?)?")
_SECRET_FLAG = re.compile(
    r"--?(?:[a-z]+-)*(?:api-?key|token|password|passwd|secret|credentials?)(?:=(?P<value>.+))?", re.IGNORECASE
)
_LARGEST_SCRIPT = 1_000_000


class Runtime(StrEnum):
    """The runtime an image needs for a command."""

    NODE = "node"
    PYTHON = "python"
    GIVEN = "given"


@dataclass(frozen=True, slots=True)
class Recipe:
    """A recipe to put a command into an image.

    `command` runs in the image and `typed` on this machine; `files` belong into the folder `server`;
    `unknown` lists what has to be done by hand.
    """

    runtime: Runtime
    command: tuple[str, ...]
    typed: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()


def recipe_of(words: Sequence[str], base_image: str = "") -> Recipe:
    """Return the recipe for a command.

    Raises `CommandError` for a command that cannot run in any image, and for one that holds a secret.
    """
    refuse_secrets(words)
    program = Path(words[0]).name
    if program in _CONTAINERS:
        raise CommandError(
            f"{program} runs no container inside a cluster; import the command that its image runs, and name "
            "an image that has both it and Beckon's tools by --base-image",
            status=2,
        )
    if base_image:
        return Recipe(Runtime.GIVEN, tuple(words), tuple(words), unknown=_path_notes(words[1:]))
    recipe = _known_recipe(program, words)
    if recipe is None:
        unknown = f"how {program} is installed is not known: write it into the Dockerfile"
        recipe = Recipe(Runtime.GIVEN, (program, *words[1:]), tuple(words), unknown=(unknown,))
    local = [word for word in recipe.command[1:] if not word.startswith(SERVER)]
    return Recipe(
        recipe.runtime, recipe.command, recipe.typed, recipe.files, (*recipe.unknown, *_path_notes(local))
    )


def refuse_secrets(words: Sequence[str]) -> None:
    """Raise `CommandError` if a word looks like a secret. The words would be written into manifests."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        match = _SECRET_FLAG.fullmatch(word)
        url = urlsplit(word) if "://" in word else None
        if (match and (match["value"] or (following and not following.startswith("-")))) or (
            url and url.password
        ):
            shown = word.partition("=")[0] if match else f"{url.scheme}://…" if url else word
            raise CommandError(
                f"{shown} holds a secret, which no manifest may; hand it on in the environment by --env, and "
                "with sh -c 'exec …' where the server reads it from nowhere else",
                status=2,
            )


def _known_recipe(program: str, words: Sequence[str]) -> Recipe | None:
    if program == "npx":
        return _npx_recipe(words, words[1:])
    if program == "npm" and list(words[1:2]) in (["exec"], ["x"]):
        return _npx_recipe(words, words[2:])
    if program == "uvx":
        return _tool_recipe(words, words[1:])
    if (program == "uv" and list(words[1:3]) == ["tool", "run"]) or (program, *words[1:2]) == ("pipx", "run"):
        return _tool_recipe(words, words[3 if program == "uv" else 2 :])
    if program == "node" and len(words) > 1 and not words[1].startswith("-"):
        return _node_script(words)
    if _PYTHON.fullmatch(program) and len(words) > 1:
        return _module_recipe(words) if words[1] == "-m" and len(words) > 2 else _python_script(words)
    return None


def _npx_recipe(typed: Sequence[str], words: Sequence[str]) -> Recipe | None:
    rest, wanted = list(words), []
    while rest and rest[0].startswith("-"):
        flag, _, value = rest.pop(0).partition("=")
        if flag in ("-p", "--package"):
            wanted.append(value or (rest.pop(0) if rest else ""))
        elif flag not in _NPX_FLAGS:
            return None
    if not rest:
        return None
    name = rest.pop(0)
    specs = wanted or [name]
    pinned = [packages.npm_package(spec) for spec in specs]
    if not all(one.name for one in pinned):
        return None
    program = name if wanted else pinned[0].program
    document = {"private": True, "dependencies": {one.name: one.version for one in pinned}}
    files = {"package.json": json.dumps(document, indent=2) + "\n"}
    if not any(one.unknown for one in pinned) and (lock := packages.npm_lock(files["package.json"])):
        files["package-lock.json"] = lock
    unknown = tuple(one.unknown for one in pinned if one.unknown)
    return Recipe(
        Runtime.NODE, (f"{SERVER}/node_modules/.bin/{program}", *rest), tuple(typed), files, unknown
    )


def _tool_recipe(typed: Sequence[str], words: Sequence[str]) -> Recipe | None:
    rest, source, more = list(words), "", []
    while rest and rest[0].startswith("-"):
        flag, equals, value = rest.pop(0).partition("=")
        if flag in _UV_VALUES:
            value = value if equals else (rest.pop(0) if rest else "")
            if flag in ("--from", "--spec"):
                source = value
            elif flag in ("--with", "-w"):
                more += value.split(",")
        elif flag not in _UV_FLAGS:
            return None
    if not rest:
        return None
    name, _, version = rest.pop(0).partition("@")
    spec = source or (f"{name}=={version}" if version and version != "latest" else name)
    pinned = packages.tool_version(typed[0], spec)
    files = {"requirements.txt": "\n".join([pinned or spec, *more]) + "\n"}
    unknown = (
        ()
        if pinned
        else (f"which version of {spec} runs here is not known: pin it in server/requirements.txt",)
    )
    return Recipe(Runtime.PYTHON, (f"{SERVER}/env/bin/{name}", *rest), tuple(typed), files, unknown)


def _module_recipe(words: Sequence[str]) -> Recipe:
    module = words[2].partition(".")[0]
    distributions = packages.find_distributions(words[0], [module])
    unknown = _not_found(distributions, [module])
    files = {"requirements.txt": "".join(f"{each}\n" for each in sorted(set(distributions.values())))}
    return Recipe(Runtime.PYTHON, (f"{SERVER}/env/bin/python", *words[1:]), tuple(words), files, unknown)


def _python_script(words: Sequence[str]) -> Recipe | None:
    text = _script_of(words[1])
    if text is None:
        return None
    name = Path(words[1]).name
    imported = packages.find_imports(text)
    distributions = packages.find_distributions(words[0], imported)
    declared = packages.declared_packages(text)
    wanted = sorted(declared or set(distributions.values()))
    return Recipe(
        Runtime.PYTHON,
        (f"{SERVER}/env/bin/python", f"{SERVER}/{name}", *words[2:]),
        (words[0], f"server/{name}", *words[2:]),
        {"requirements.txt": "".join(f"{each}\n" for each in wanted), name: text},
        () if declared else _not_found(distributions, imported),
    )


def _node_script(words: Sequence[str]) -> Recipe | None:
    text = _script_of(words[1])
    if text is None:
        return None
    name = Path(words[1]).name
    return Recipe(
        Runtime.NODE,
        ("node", f"{SERVER}/{name}", *words[2:]),
        ("node", f"server/{name}", *words[2:]),
        {"package.json": '{\n  "private": true,\n  "dependencies": {}\n}\n', name: text},
        (
            f"what {name} imports is not known: put its files into server/, its packages into "
            "server/package.json",
        ),
    )


def _script_of(word: str) -> str | None:
    path = Path(word)
    if word.startswith("-") or not path.is_file() or path.stat().st_size > _LARGEST_SCRIPT:
        return None
    return path.read_text(encoding="utf-8", errors="replace")


def _not_found(distributions: Mapping[str, str], wanted: Sequence[str]) -> tuple[str, ...]:
    missing = sorted(set(wanted) - distributions.keys())
    if not missing:
        return ()
    return (
        f"where {', '.join(missing)} comes from is not known: put it into server/, or its package into "
        "server/requirements.txt",
    )


def _path_notes(words: Sequence[str]) -> tuple[str, ...]:
    """Return a note for each word naming a file of this machine."""
    here = [
        word for word in words if (word == "." or "/" in word) and "://" not in word and _file_exists(word)
    ]
    return tuple(f"{word} is of this machine: mount it in the Service, or write another" for word in here)


def _file_exists(word: str) -> bool:
    try:
        return Path(word).exists()
    except (OSError, ValueError):
        return False


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
            note = f"{name}: yours differs; --renew writes it anew"
            yield Text.assemble(("kept     ", "yellow"), note)
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
    written, left_alone = [], []
    for name, text in _files(recipe, bridge, running, options.base_image).items():
        path = folder / name
        before = path.read_text(encoding="utf-8") if path.exists() else None
        if before is None or (options.renew and before != text):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            written.append(name)
        elif before != text:
            left_alone.append(name)
    return CommandProject(
        tuple(written), tuple(left_alone), tuple(_next_commands(folder, running, bridge)), recipe.unknown
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
    files = {
        "Dockerfile": _filled(f"Dockerfile.{recipe.runtime}", values),
        ".dockerignore": _filled("dockerignore", values),
        "README.md": _filled("README.md", values),
        f"{MANIFESTS}/service.yaml": service(running, bridge),
        f"{MANIFESTS}/sinkbinding.yaml": sink_binding(bridge),
    }
    if recipe.runtime is not Runtime.GIVEN:
        files |= {f"server/{name}": text for name, text in recipe.files.items()}
    return files


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
