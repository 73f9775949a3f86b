"""The package and version of a command, from its package manager.

The version is the one that runs on this machine.
"""

import ast
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_SECONDS = 60
_NPM_NAME = re.compile(r"(@[a-z0-9][\w.-]*/)?[a-z0-9][\w.-]*", re.ASCII)
_PROJECT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_INLINE = re.compile(r"^# /// script\s*$\n((?:^#(?: .*)?$\n)+?)^# ///$", re.MULTILINE)
_ASK = """
import json, sys
from importlib import metadata
found, known = {}, metadata.packages_distributions()
for module in sys.argv[1:]:
    for name in known.get(module, [])[:1]:
        one = metadata.distribution(name)
        if one.read_text('direct_url.json') is None:
            found[module] = f"{one.metadata['Name']}=={one.version}"
print(json.dumps(found))
"""
_VERSION = "import sys; from importlib import metadata; print(metadata.version(sys.argv[1]))"


@dataclass(frozen=True, slots=True)
class NpmPackage:
    """An npm package: its version to install, and its program. `unknown` says what could not be found out."""

    name: str
    version: str
    program: str
    unknown: str = ""


def npm_package(spec: str) -> NpmPackage:
    """Return the npm package run by npx. Its name is empty if `spec` names no package of the registry."""
    at = spec.find("@", 1)
    name, wanted = (spec[:at], spec[at + 1 :]) if at > 0 else (spec, "")
    if not _NPM_NAME.fullmatch(name):
        return NpmPackage("", "", "")
    wanted = wanted or _npm_local(name)
    versions = _json(
        _command_output(["npm", "view", f"{name}@{wanted}" if wanted else name, "version", "bin", "--json"])
    )
    newest = versions[-1] if isinstance(versions, list) and versions else versions
    short = name.rpartition("/")[2]
    if not isinstance(newest, dict) or not isinstance(newest.get("version"), str):
        unknown = f"which version of {name} runs here is not known: pin it in server/package.json"
        return NpmPackage(name, wanted or "latest", short, unknown)
    programs = newest.get("bin")
    names = list(programs) if isinstance(programs, dict) else []
    return NpmPackage(name, newest["version"], names[0] if len(names) == 1 else short)


def _npm_local(name: str) -> str:
    """Return the version of a package installed in this project.

    Like npx it searches `node_modules` in this folder and above. Returns "" if there is none; npx would
    then install the newest.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        package = folder / "node_modules" / name / "package.json"
        if package.is_file():
            content = _json(package.read_text(encoding="utf-8"))
            return str(content.get("version", "")) if isinstance(content, dict) else ""
    return ""


def npm_lock(package: str) -> str:
    """Return the lock file of a package.json, without registry URLs. Returns "" if npm makes none."""
    options = (
        "--package-lock-only",
        "--ignore-scripts",
        "--omit-lockfile-registry-resolved",
        "--no-audit",
        "--no-fund",
    )
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "package.json").write_text(package, encoding="utf-8")
        _command_output(["npm", "install", *options], folder)
        lock = Path(folder, "package-lock.json")
        if not lock.exists():
            return ""
        document = json.loads(lock.read_text(encoding="utf-8"))
        document.pop("name", None)  # that of the folder
        return json.dumps(document, indent=2) + "\n"


def tool_version(program: str, spec: str) -> str:
    """Return `NAME==VERSION` of the tool run by uvx. Returns "" if the version cannot be known."""
    match = _PROJECT.match(spec)
    if match is None or "://" in spec or Path(program).name not in ("uvx", "uv"):
        return ""
    run = ["uvx"] if Path(program).name == "uvx" else ["uv", "tool", "run"]
    version = _command_output([*run, "--from", spec, "python", "-c", _VERSION, match[0]]).strip()
    extras = re.match(r"\[[^]]*\]", spec[match.end() :])
    return f"{match[0]}{extras[0] if extras else ''}=={version}" if version else ""


def find_distributions(interpreter: str, modules: Sequence[str]) -> Mapping[str, str]:
    """Return `NAME==VERSION` of each module's distribution.

    `interpreter` is the Python that has the modules. Modules without a distribution from a package index
    are left out.
    """
    versions = _json(_command_output([interpreter, "-c", _ASK, *modules])) if modules else {}
    return versions if isinstance(versions, dict) else {}


def find_imports(script: str) -> list[str]:
    """Return the modules a script imports, standard library excluded."""
    try:
        tree = ast.parse(script)
    except SyntaxError:
        return []
    imports = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module]
            if isinstance(node, ast.ImportFrom) and node.module and not node.level
            else []
        )
    }
    return sorted(imports - sys.stdlib_module_names)


def declared_packages(script: str) -> set[str]:
    """Return the packages in a script's inline metadata (PEP 723)."""
    match = _INLINE.search(script)
    if match is None:
        return set()
    text = "".join(
        line[2:] if line.startswith("# ") else line[1:] for line in match[1].splitlines(keepends=True)
    )
    try:
        wanted = tomllib.loads(text).get("dependencies", [])
    except tomllib.TOMLDecodeError:
        return set()
    return {each for each in wanted if isinstance(each, str)}


def _command_output(command: Sequence[str], folder: str | None = None) -> str:
    """Return the output of a command on this machine. Returns "" if the command fails."""
    program = shutil.which(command[0])
    if program is None:
        return ""
    try:
        done = subprocess.run(  # noqa: S603 the user's words, and our own
            [program, *command[1:]],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if done.returncode else done.stdout


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None
