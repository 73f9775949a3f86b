"""Recipes for the commands of MCP servers where no package manager is there to give a version."""

import json
import sys
from pathlib import Path

import pytest

from beckon_cli.errors import CommandError
from beckon_cli.importing.mcp.packages import declared_packages, find_imports
from beckon_cli.importing.mcp.project import Runtime, recipe_of

NODE = "/srv/server/node_modules/.bin"
PYTHON = "/srv/server/env/bin"


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No package manager, and no packages of this project."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("words", "command", "dependencies"),
    [
        ("npx -y @scope/server-x stdio", f"{NODE}/server-x stdio", {"@scope/server-x": "latest"}),
        ("npx server-x@1.2.3", f"{NODE}/server-x", {"server-x": "1.2.3"}),
        ("npm exec --yes server-x", f"{NODE}/server-x", {"server-x": "latest"}),
        ("npx --package=one -p two@2 run-it -a", f"{NODE}/run-it -a", {"one": "latest", "two": "2"}),
    ],
)
def test_a_package_of_npm_is_installed_in_the_image(
    words: str, command: str, dependencies: dict[str, str]
) -> None:
    made = recipe_of(words.split())

    assert (made.runtime, " ".join(made.command)) == (Runtime.NODE, command)
    assert json.loads(made.files["package.json"]) == {"private": True, "dependencies": dependencies}
    assert [note.partition(" runs here")[0] for note in made.unknown] == [
        f"which version of {name}" for name in dependencies
    ]


def test_the_version_of_npm_is_that_of_this_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "node_modules" / "server-x" / "package.json"
    package.parent.mkdir(parents=True)
    package.write_text('{"version": "4.5.6"}', encoding="utf-8")
    below = tmp_path / "src"
    below.mkdir()
    monkeypatch.chdir(below)
    found = json.loads(recipe_of(["npx", "server-x"]).files["package.json"])
    package.write_text("no JSON", encoding="utf-8")
    unreadable = json.loads(recipe_of(["npx", "server-x"]).files["package.json"])

    assert found["dependencies"] == {"server-x": "4.5.6"}
    assert unreadable["dependencies"] == {"server-x": "latest"}


@pytest.mark.parametrize(
    ("words", "command", "requirements"),
    [
        ("uvx mcp-server-time --zone Z", f"{PYTHON}/mcp-server-time --zone Z", "mcp-server-time\n"),
        ("uvx mcp-server-time@1.2", f"{PYTHON}/mcp-server-time", "mcp-server-time==1.2\n"),
        ("uvx mcp-server-time@latest", f"{PYTHON}/mcp-server-time", "mcp-server-time\n"),
        ("uvx -q --python 3.12 --from pkg[x]==2 run-it", f"{PYTHON}/run-it", "pkg[x]==2\n"),
        ("uv tool run --with=a,b -w c run-it", f"{PYTHON}/run-it", "run-it\na\nb\nc\n"),
        ("pipx run --spec git+https://host/x run-it", f"{PYTHON}/run-it", "git+https://host/x\n"),
    ],
)
def test_a_tool_of_python_is_installed_in_the_image(words: str, command: str, requirements: str) -> None:
    made = recipe_of(words.split())

    assert (made.runtime, " ".join(made.command)) == (Runtime.PYTHON, command)
    assert made.files == {"requirements.txt": requirements}
    assert [note.partition(" of ")[0] for note in made.unknown] == ["which version"]


@pytest.mark.parametrize(
    "words",
    [
        "npx",
        "npx --registry=https://npm.example server-x",
        "npx ./here",
        "npx -p",
        "npm run start",
        "uvx",
        "uvx --unheard-of run-it",
        "uvx --with",
        "uv run server.py",
        "node",
        "node --eval 1",
        "node missing.js",
        "python3",
        "python3 missing.py",
        "python3 -m",
        "/opt/x/server --stdio",
    ],
)
def test_a_command_without_a_recipe_is_left_to_its_owner(words: str) -> None:
    made = recipe_of(words.split())
    program = Path(words.split(maxsplit=1)[0]).name

    assert (made.runtime, made.files) == (Runtime.GIVEN, {})
    assert made.command == (program, *words.split()[1:])
    assert made.unknown == (f"how {program} is installed is not known: write it into the Dockerfile",)


def test_a_script_of_node_is_copied(tmp_path: Path) -> None:
    (tmp_path / "server.js").write_text("import 'x'", encoding="utf-8")
    made = recipe_of(["node", "server.js", "--stdio"])

    assert (made.runtime, made.command) == (Runtime.NODE, ("node", "/srv/server/server.js", "--stdio"))
    assert made.typed == ("node", "server/server.js", "--stdio")
    assert made.files["server.js"] == "import 'x'"
    assert "what server.js imports is not known" in made.unknown[0]


def test_a_script_of_python_is_copied_with_what_it_declares_or_imports(tmp_path: Path) -> None:
    declaring = "# /// script\n# dependencies = ['mcp>=2']\n# ///\nimport nowhere\n"
    (tmp_path / "declaring.py").write_text(declaring, encoding="utf-8")
    (tmp_path / "importing.py").write_text("import mcp, nowhere\n", encoding="utf-8")
    declared = recipe_of([sys.executable, "declaring.py"])
    imported = recipe_of([sys.executable, "importing.py", "x"])

    assert (declared.files["requirements.txt"], declared.unknown) == ("mcp>=2\n", ())
    assert imported.files["requirements.txt"].startswith("mcp==")
    assert imported.command == (f"{PYTHON}/python", "/srv/server/importing.py", "x")
    assert [note.partition(" is not known")[0] for note in imported.unknown] == ["where nowhere comes from"]


def test_a_script_that_is_too_large_is_not_copied(tmp_path: Path) -> None:
    (tmp_path / "large.py").write_text("#" * 1_000_001, encoding="utf-8")

    assert recipe_of(["python3", "large.py"]).files == {}


@pytest.mark.parametrize("program", ["docker", "podman", "/usr/bin/nerdctl"])
def test_a_container_in_a_container_is_refused_with_the_cure(program: str) -> None:
    with pytest.raises(CommandError, match="--base-image"):
        recipe_of([program, "run", "-i", "mcp/time"])


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("server --api-key hush", "--api-key"),
        ("server --db-password=hush", "--db-password"),
        ("server -token hush", "-token"),
        ("server https://me:hush@host/x", "https://…"),
    ],
)
def test_a_secret_is_refused_and_not_shown(words: str, shown: str) -> None:
    with pytest.raises(CommandError) as refused:
        recipe_of(words.split())

    assert str(refused.value).startswith(f"{shown} holds a secret")
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize("words", ["server --token", "server --token --verbose", "server https://host/x"])
def test_a_flag_without_a_value_and_a_url_without_a_password_are_no_secrets(words: str) -> None:
    assert recipe_of(words.split()).command == tuple(words.split())


@pytest.mark.parametrize(
    ("script", "packages", "modules"),
    [
        ("import (", set(), []),
        ("# /// script\n# dependencies = [\n# ///\n", set(), []),
        ("# /// script\n# requires-python = '>=3'\n# ///\n", set(), []),
        ("# /// script\n# dependencies = ['a', 1]\n#\n# ///\n", {"a"}, []),
        ("from . import x\nfrom .y import z\nfrom a.b import c\nimport os, d.e\n", set(), ["a", "d"]),
    ],
)
def test_a_script_that_says_nothing_or_nonsense_of_its_packages(
    script: str, packages: set[str], modules: list[str]
) -> None:
    assert (declared_packages(script), find_imports(script)) == (packages, modules)
