"""The values of the chart: documented, in the schema, in the README, and used."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from beckon_contract.resources.tools import ANSWERING

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "beckon"
MARKS = "<!-- Made from values.yaml by `make docs`. -->\n<!-- The end of what is made. -->\n"


def generate(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "charts" / "generate.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def values() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    return found


def problems(given: object) -> list[str]:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    return [error.message for error in jsonschema.Draft7Validator(schema).iter_errors(given)]


def chart(folder: Path, text: str) -> Path:
    (folder / "values.yaml").write_text(text, encoding="utf-8")
    (folder / "README.md").write_text(f"# A chart\n\n{MARKS}", encoding="utf-8")
    return folder


def test_schema_and_readme_say_what_the_values_say() -> None:
    done = generate("--check")

    assert (done.returncode, done.stderr) == (0, "")


def test_a_changed_default_makes_schema_and_readme_stale(tmp_path: Path) -> None:
    copy = tmp_path / "beckon"
    shutil.copytree(CHART, copy)
    text = (copy / "values.yaml").read_text(encoding="utf-8")
    (copy / "values.yaml").write_text(text.replace("logLevel: info", "logLevel: debug"), encoding="utf-8")

    done = generate("--check", str(copy))

    assert done.returncode == 1
    assert "README.md" in done.stderr
    assert "values.schema.json" in done.stderr
    assert generate(str(copy)).returncode == 0
    assert generate("--check", str(copy)).returncode == 0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("# One.\none: 1\n\ntwo: 2\n", "line 4: two has no comment"),
        ("# One.\none:\n  inner: 1\n", "line 3: one.inner has no comment"),
        ("# One.\n# @schema {minimum: 1}\none: 1\n", "line 2: what follows @schema is no JSON object"),
        ("- one\n", "holds no map of values"),
    ],
)
def test_values_that_cannot_be_documented_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    done = generate(str(chart(tmp_path, text)))

    assert done.returncode == 2
    assert problem in done.stderr


def test_comments_and_defaults_become_rows_and_types(tmp_path: Path) -> None:
    text = '# A part.\npart:\n  # How many,\n  # at least one.\n  # @schema {"minimum": 1}\n  count: 2\n'
    folder = chart(tmp_path, text)

    assert generate(str(folder)).returncode == 0

    schema = json.loads((folder / "values.schema.json").read_text(encoding="utf-8"))
    count = schema["properties"]["part"]["properties"]["count"]
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert count == {"description": "How many, at least one.", "type": "integer", "default": 2, "minimum": 1}
    assert "### part\n\nA part.\n" in readme
    assert "| `part.count` | `2` | How many, at least one. |" in readme


def test_a_readme_without_the_marks_is_refused(tmp_path: Path) -> None:
    folder = chart(tmp_path, "# One.\none: 1\n")
    (folder / "README.md").write_text("# A chart\n", encoding="utf-8")

    done = generate(str(folder))

    assert done.returncode == 2
    assert "must hold the two marks" in done.stderr


def test_the_defaults_fit_the_schema() -> None:
    assert problems(values()) == []


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"shim": {"replica": 3}}, "'replica' was unexpected"),
        ({"shims": {}}, "'shims' was unexpected"),
        ({"shim": {"replicas": 0}}, "0 is less than the minimum of 1"),
        ({"shim": {"replicas": "3"}}, "'3' is not of type 'integer'"),
        ({"model": {"baseURL": "api.example.com/v1"}}, "does not match"),
        ({"demoModel": {"enabled": "yes"}}, "is not one of"),
        ({"brokers": [{"namespace": "default"}]}, "'name' is a required property"),
        ({"brokers": [{"namespace": "a", "name": "b", "kind": "Kafka"}]}, "'kind' was unexpected"),
        ({"agent": {"namespaces": []}}, "should be non-empty"),
        ({"image": {"pullPolicy": "Sometimes"}}, "is not one of"),
        ({"scheduling": {"shim": {"nodeselector": {}}}}, "'nodeselector' was unexpected"),
        ({"scheduling": {"broker": {}}}, "'broker' was unexpected"),
        ({"resources": {"shim": {"request": {}}}}, "'request' was unexpected"),
        ({"logLevel": "verbose"}, "is not one of"),
    ],
    ids=str,
)
def test_a_mistake_in_the_values_is_refused(given: dict[str, Any], problem: str) -> None:
    (found,) = problems(given)

    assert problem in found


def test_every_value_is_used_by_a_template() -> None:
    found = set(unused(paths(values())))

    assert found == set()
    assert set(unused(["shim.nonsense", "nonsense"])) == {"shim.nonsense", "nonsense"}


def paths(found: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Yield the path of every value that has none inside it; free maps count as one."""
    for key, value in found.items():
        path = f"{above}{key}"
        if isinstance(value, dict) and value and not path.startswith("resources."):
            yield from paths(value, f"{path}.")
        else:
            yield path


def unused(request: Iterator[str] | list[str]) -> Iterator[str]:
    """Yield the values that no template names, whole or inside `with` or `range` of what holds them.

    A group that is handed to a named template as `"values" .Values.GROUP` is `.values` there.
    """
    folder = CHART / "templates"
    texts = [path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file()]
    groups = {found for text in texts for found in re.findall(r'"values" \.Values\.([\w.]+\w)', text)}
    for path in request:
        handed = [path.removeprefix(f"{group}.") for group in groups if path.startswith(f"{group}.")]
        names = [rf"\.Values\.{re.escape(path)}", *(rf"[.$]values\.{re.escape(each)}" for each in handed)]
        if not any(uses(text, name) for name in names for text in texts):
            yield path


def uses(text: str, name: str) -> bool:
    """Return whether a template has this name, a pattern, or its last part beside that of what holds it."""
    above, _, last = name.rpartition(r"\.")
    inside = re.compile(rf"\{{\{{-? (?:with|range) \S*{above} -?\}}\}}")
    part = re.compile(rf"(?<![\w)])\.{last}\b")
    held = inside.search(text) is not None and part.search(text) is not None
    return held or re.search(rf"{name}\b", text) is not None


def test_every_value_that_the_templates_name_exists() -> None:
    folder, known = CHART / "templates", values()
    named = {
        found
        for path in folder.rglob("*")
        if path.is_file()
        for found in re.findall(r"\.Values\.([\w.]+\w)", path.read_text(encoding="utf-8"))
    }

    assert [name for name in sorted(named) if not exists(name, known)] == []
    assert len(named) > 30


def exists(name: str, found: Any) -> bool:
    for part in name.split("."):
        if not isinstance(found, dict) or part not in found:
            return False
        found = found[part]
    return True


@pytest.mark.parametrize(
    "page", ["docs/install.md", "docs/upgrade.md", "charts/beckon/README.md", "README.md"]
)
def test_every_value_that_a_page_names_exists(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    sections = {key for key, value in values().items() if isinstance(value, dict)}
    shown = {
        code for code in re.findall(r"`([a-zA-Z]+\.[a-zA-Z.]+)`", text) if code.split(".")[0] in sections
    }
    set_ = set(re.findall(r"--set ([a-zA-Z.]+)=", text))
    there = values()

    assert [name for name in sorted(shown | set_) if not exists(name, there)] == []
    assert shown or page == "README.md"


def test_the_crds_are_those_of_the_plain_manifests() -> None:
    plain = {path.name: path.read_text("utf-8") for path in (ROOT / "deploy").glob("2*.yaml")}
    charted = {path.name: path.read_text("utf-8") for path in (CHART / "crds").iterdir()}

    assert charted == plain, "run: make docs"
    assert len(plain) == 2


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"host": "api.example.com", "privat": True}, "privat"),
        ({"private": True}, "'host' is a required property"),
    ],
)
def test_a_host_of_the_adapter_is_written_as_it_takes_it(entry: dict[str, object], said: str) -> None:
    assert problems({"adapter": {"allowedHosts": [{"host": "api.example.com", "private": True}]}}) == []
    (problem,) = problems({"adapter": {"allowedHosts": [entry]}})
    assert said in problem


def test_a_credential_of_the_adapter_names_its_secret_and_its_hosts() -> None:
    whole = {"name": "a", "hosts": ["b.example"], "type": "header", "as": "X-Key", "secret": "s", "key": "k"}

    assert problems({"adapter": {"credentials": [whole]}}) == []
    for name in ("hosts", "secret", "key", "name"):
        assert problems({"adapter": {"credentials": [{key: whole[key] for key in whole if key != name}]}})


def test_kubectl_get_tools_shows_whether_calls_give_results_and_why_a_tool_is_not_right() -> None:
    (definition,) = yaml.safe_load_all((CHART / "crds" / "200-crd-tool.yaml").read_text("utf-8"))
    (version,) = definition["spec"]["versions"]
    columns = {one["name"]: one["jsonPath"] for one in version["additionalPrinterColumns"]}

    assert columns["Answering"] == f'.status.conditions[?(@.type=="{ANSWERING}")].status'
    assert columns["Reason"] == '.status.conditions[?(@.type=="Ready")].reason'
