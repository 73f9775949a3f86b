"""What the docs say against the code, as far as nothing needs to run."""

import ast
import importlib.util
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import get_args

import pytest
import yaml

import beckon_contract
from beckon_agent.core.run_events import Ending
from beckon_agent.dialects.registry import DIALECTS
from beckon_agent.tool_calls.progress import ProgressReport, read_report
from beckon_cli.entry import app
from beckon_cli.probe.subscriptions import RUN_LABEL
from beckon_contract.catalogue.annotations import KNOWN, LOCAL_COMMAND, LOCAL_URL
from beckon_contract.catalogue.builder import build_catalogue
from beckon_contract.catalogue.check import check
from beckon_contract.cloudevents.events import from_http, from_structured
from beckon_contract.failures import Reason
from beckon_contract.knative import eventtypes
from beckon_contract.knative.eventtypes import TOOL_LABEL, is_event_type
from beckon_contract.knative.triggers import ORDER_ANNOTATION
from beckon_contract.kubernetes_objects import Resource, Unreadable, parse_manifests
from beckon_contract.schema.parameters import SchemaError, normalise_text
from beckon_operator.reply_path.wanted import TIMEOUT_WRITTEN
from tests.docs.blocks import KINDS, PAGES, ROOT, Block, blocks, every_block, prose, table

DOCS = ROOT / "docs"
CODE = re.compile(r"`([^`\n]+)`")
SETTING = re.compile(r"\b(?:BECKON|OPENAI)_[A-Z_]*[A-Z]\b")
# What only changes folders and looks, and the programs of anyone who has a cluster.
HARMLESS = {".", "cd", "curl", "ls", "mkdir", "kubectl", "helm"}


def test_every_block_says_what_it_is() -> None:
    unknown = [str(block) for page in PAGES for block in blocks(page) if block.mark not in kinds(block)]

    assert unknown == []
    assert len([block for page in PAGES for block in blocks(page)]) > 60


def kinds(block: Block) -> set[str]:
    return KINDS.get(block.language, set())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = [link for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)) if not leads(page, link)]

    assert broken == []


def leads(page: Path, link: str) -> bool:
    if link.startswith("https://"):
        return True
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    return target.exists() and (not anchor or anchor in anchors(target))


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("block", every_block("yaml", "", "mistake"), ids=str)
def test_manifests_pass_the_check_unless_they_are_shown_as_mistakes(block: Block) -> None:
    resources = list(parse_manifests(block.text, str(block)))
    request = resources if block.mark == "mistake" else [*resources, *missing_triggers(resources)]

    errors = [finding.message for finding in check(request).findings if finding.severity == "error"]

    assert resources
    assert bool(errors) == (block.mark == "mistake"), errors


def missing_triggers(resources: list[Resource | Unreadable]) -> Iterator[Resource | Unreadable]:
    """Yield a Trigger for every EventType that a page shows without one."""
    shown = [found for found in resources if isinstance(found, Resource)]
    if any(found.kind == "Trigger" for found in shown):
        return
    for found in filter(is_event_type, shown):
        subscriber = {"uri": "http://127.0.0.1:9000"}
        document = {
            "apiVersion": "eventing.knative.dev/v1",
            "kind": "Trigger",
            "metadata": {"name": found.name, "namespace": found.namespace},
            "spec": {"broker": "default", "subscriber": subscriber},
        }
        yield from parse_manifests(json.dumps(document), "beside it")


@pytest.mark.parametrize("block", every_block("yaml", "fragment"), ids=str)
def test_fragments_are_yaml(block: Block) -> None:
    assert isinstance(yaml.safe_load(block.text), dict)


@pytest.mark.parametrize("block", every_block("python", ""), ids=str)
def test_python_that_declares_runs(block: Block) -> None:
    names: dict[str, object] = {"__name__": "example"}

    exec(compile(block.text, str(block), "exec"), names)

    assert len(names) > 2


@pytest.mark.parametrize("block", every_block("python", "beside"), ids=str)
def test_python_beside_other_files_of_its_page_imports_them(block: Block, tmp_path: Path) -> None:
    for other in blocks(block.page):
        if other.file:
            (tmp_path / other.file).write_text(other.text, encoding="utf-8")

    imported = [sys.executable, "-c", f"import {Path(block.file).stem}"]

    assert subprocess.run(imported, cwd=tmp_path, timeout=50, check=False).returncode == 0


def test_every_form_of_parameters_becomes_what_the_page_says() -> None:
    forms = [block for block in blocks(DOCS / "eventtypes.md") if block.language == "json"]
    pairs = list(zip(forms[::2], forms[1::2], strict=True))

    for written, becomes in pairs:
        assert (written.mark, becomes.mark) == ("written", "becomes"), str(written)
        assert normalise_text(written.text) == json.loads(becomes.text), str(written)
    assert len(pairs) >= 10


@pytest.mark.parametrize("block", every_block("http", ""), ids=str)
def test_messages_on_the_wire_are_cloudevents(block: Block) -> None:
    head, _, body = block.text.partition("\n\n")
    headers = [line.partition(": ")[::2] for line in head.splitlines()[1:]]

    event = from_http([(name.encode(), value.encode()) for name, value in headers], body.strip().encode())

    calls = {"calculator", "report.yearly", "files.delete"}
    assert re.sub(r"\.(reply|progress)$", "", event.type) in calls


def test_a_stream_on_the_wire_shows_cloudevents() -> None:
    (block,) = every_block("http", "stream")
    names = re.findall(r"^event: (\w+)$", block.text, re.MULTILINE)
    events = [
        from_structured(line.encode()) for line in re.findall(r"^data: (.*)$", block.text, re.MULTILINE)
    ]

    assert names == ["progress", "reply"]
    assert read_report(events[0]) == ProgressReport(1, 3)
    assert events[1].type == "report.reply"


@pytest.mark.parametrize("block", every_block("console", "not-run", "up"), ids=str)
def test_commands_that_are_not_run_exist(block: Block) -> None:
    for command, _ in block.commands:
        for part in command.split(" && "):
            words = [word for word in shlex.split(part) if not re.match(r"[A-Z_]+=", word)]
            assert exists(words), f"{block}: {part}"


def exists(words: list[str]) -> bool:
    match words:
        case ["make", *targets]:
            return set(targets) <= make_targets()
        case ["beckon" | ".venv/bin/beckon", *rest]:
            app.parse_args(rest, print_error=False, exit_on_error=False)
            return bool(rest)
        case ["python", "-m", module, *_]:
            return importlib.util.find_spec(module) is not None
        case ["python", name]:
            return any(block.file == name for page in PAGES for block in blocks(page))
        case [first, *_]:
            return first in HARMLESS
    return False


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_verbs_and_targets_in_the_text_exist(page: Path) -> None:
    codes = CODE.findall(prose(page))
    verbs = {found[1] for code in codes if (found := re.match(r"(?:\.venv/bin/)?beckon ([a-z]+)", code))}
    targets = {found[1] for code in codes if (found := re.match(r"make ([a-z-]+)", code))}

    assert verbs <= commands()
    assert targets <= make_targets()


def commands() -> set[str]:
    return {name for name in app if not name.startswith("-")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_setting_in_the_text_exists(page: Path) -> None:
    known = {row[0].strip("`") for row in settings_rows()}

    assert set(SETTING.findall(page.read_text(encoding="utf-8"))) <= known


def settings_rows() -> list[list[str]]:
    lines = (DOCS / "settings.md").read_text(encoding="utf-8").splitlines()
    return [line.strip("| ").split(" | ") for line in lines if line.startswith("| `")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_annotation_in_the_text_exists(page: Path) -> None:
    mistakes = {"beckon.dev/time-out"}  # shown as one
    words = set(re.findall(r"beckon\.dev/[a-z0-9-]+", page.read_text(encoding="utf-8")))
    found = {word for word in words if not re.fullmatch(r"beckon\.dev/v[0-9][a-z0-9]*", word)}

    known = {*KNOWN, RUN_LABEL, TOOL_LABEL, LOCAL_COMMAND, LOCAL_URL, ORDER_ANNOTATION, TIMEOUT_WRITTEN}
    assert found - mistakes <= known


def test_the_tables_list_all_of_their_kind() -> None:
    assert first_cells("command-line.md", "verb") == commands()
    assert first_cells("models.md", "dialect") == set(DIALECTS)
    assert first_cells("concepts.md", "reason") == set(Reason)
    annotations = first_cells("eventtypes.md", "on the EventType")
    assert annotations == {*KNOWN, f"label `{TOOL_LABEL}"}
    (runs,) = [row for row in table(DOCS / "operate.md", "metric") if "runs_total" in row[0]]
    assert set(CODE.findall(runs[2])) == {*get_args(Ending), "failed"}


def test_the_messages_that_are_explained_are_those_of_the_code() -> None:
    known = "\n".join([*texts_in_code(), (ROOT / "Makefile").read_text(encoding="utf-8")])
    rows = table(DOCS / "operate.md", "message") + table(DOCS / "operate.md", "symptom")
    parts = [part.strip(" :[") for row in rows for code in CODE.findall(row[0]) for part in code.split("…")]

    assert [part for part in parts if not part.startswith(("<", "beckon.dev/")) and part not in known] == []
    assert len(parts) > 25


def texts_in_code() -> Iterator[str]:
    """Yield every text in the code, what is filled in left out."""
    for room in (
        "contract",
        "runtime",
        "sources",
        "broker",
        "shim",
        "agent",
        "demo",
        "tools",
        "adapter",
        "cli",
    ):
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.JoinedStr):
                    yield "\0".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value


def first_cells(page: str, heading: str) -> set[str]:
    return {row[0].strip("`") for row in table(DOCS / page, heading)}


def test_the_table_of_refusals_lists_the_reasons_of_the_code() -> None:
    reasons, skipped = reasons_in_code()

    assert first_cells("eventtypes.md", "reason") == reasons
    assert first_cells("eventtypes.md", "skipped because") == skipped


def reasons_in_code() -> tuple[set[str], set[str]]:
    """Return the reasons that the contract's code refuses and skips EventTypes with."""
    place = {"refuse": 0, "BrokenPlace": 1, "InvalidEventType": 1, "_refusal": 1, "Refusal": 2, "NoRoute": 0}
    reasons, skipped = {"InvalidEventType"}, set[str]()
    for path in Path(beckon_contract.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in place:
                reasons |= words_in(node.args[place[node.func.id] :][:1])
            if isinstance(node, ast.FunctionDef) and node.name == "why_no_tool":
                returned = [each.value for each in ast.walk(node) if isinstance(each, ast.Return)]
                skipped |= words_in(each.elts[0] for each in returned if isinstance(each, ast.Tuple))
    return reasons, skipped


def words_in(nodes: Iterable[ast.expr]) -> set[str]:
    values = [_value(node) for node in nodes]
    return {value for value in values if isinstance(value, str)}


def _value(node: ast.expr) -> object:
    """Return a constant, also one that a name of the module of EventTypes means."""
    return getattr(eventtypes, node.id, None) if isinstance(node, ast.Name) else getattr(node, "value", None)


def test_every_example_of_a_refusal_is_refused_for_its_reason() -> None:
    rows = [row for row in table(DOCS / "eventtypes.md", "reason") if row[2].startswith("`")]

    found = {row[0].strip("`"): reason_for(row[2].strip("`")) for row in rows}

    assert {reason: reason for reason in found} == found
    assert len(found) > 12


def reason_for(example: str) -> str:
    """Return why an EventType with this in it is refused: parameters, or one field."""
    if example[0] in "{[":
        with pytest.raises(SchemaError) as refused:
            normalise_text(example)
        return refused.value.reason
    field, _, value = example.partition(": ")
    api_version = example if example.startswith("eventing.") else "eventing.knative.dev/v1beta2"
    schema = example if example.startswith("data:") else value if field == "spec.schema" else ""
    notes = {field: value.strip('"')} if field.startswith("beckon.dev/") else {}
    document = {
        "apiVersion": api_version,
        "kind": "EventType",
        "metadata": {"name": "example", "labels" if field == TOOL_LABEL else "annotations": notes},
        "spec": {"type": "example", "description": "An example.", "schema": schema},
    }
    (refusal,) = build_catalogue(parse_manifests(json.dumps(document), "example")).refusals
    return refusal.reason
