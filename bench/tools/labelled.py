"""Questions with the tools that answer them, and the catalogue that holds those tools among others.

Built from third-party data that is read in place and never committed: the single-turn Python parts of the
Berkeley function-calling leaderboard, the tasks of tau-bench, and real API operations, which have no
questions and are there to be mistaken for the right tool.

A question is labelled with the tools that its source's answer calls, all of them. The leaderboard was made
for a handful of functions a question: among all of them there is sometimes a second tool that would do as
well, and it counts as wrong here.

The questions fall into two halves by a hash, one to develop with and one that is only looked at in the end.
All questions about one tool are in one half, all tasks of one person of tau-bench too, because they resemble
each other.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from beckon_contract.names import Identity, assign_names
from beckon_contract.resources.tools import Tool
from beckon_contract.schema.parameters import SchemaError, normalise

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
Half = Literal["development", "held out"]

_BFCL_PARTS = ("simple_python", "multiple", "parallel", "parallel_multiple")


@dataclass(frozen=True, slots=True)
class Question:
    """What a person says, and the names of all tools that the work takes."""

    source: str
    text: str
    expected: frozenset[str]
    half: Half


@dataclass(frozen=True, slots=True)
class Labelled:
    """The tools by their names, and the questions."""

    tools: Mapping[str, Tool]
    questions: tuple[Question, ...]


class _Catalogue:
    """Declarations under the names that the contract would give them, each once.

    The type of a tool's events is its name behind what its source groups it by: the domain of tau-bench,
    the API of an operation. The leaderboard has no groups but those that dots in its names make.
    """

    def __init__(self) -> None:
        self._declared: dict[Identity, dict[str, Any]] = {}
        self._versions: dict[tuple[str, str, frozenset[str]], Identity] = {}

    def add(self, origin: str, declaration: Mapping[str, Any]) -> Identity:
        """Take in a declaration; one with the same name and parameters as before is the same tool."""
        name = declaration["name"]
        properties = frozenset(declaration["parameters"].get("properties", {}))
        known = self._versions.get((origin, name, properties))
        if known is not None:
            return known
        versions = sum(1 for key in self._versions if key[:2] == (origin, name))
        identity = Identity(origin, f"{name}-{versions + 1}" if versions else name)
        self._versions[origin, name, properties] = identity
        self._declared[identity] = dict(declaration)
        return identity

    def names(self) -> dict[Identity, str]:
        """Return what a model would call them."""
        return assign_names({identity: identity.name for identity in self._declared})

    def tools(self) -> dict[str, Tool]:
        """Return the tools in the order of their names."""
        names = self.names()
        found = {names[one]: _tool(one, names[one], shown) for one, shown in self._declared.items()}
        return dict(sorted(found.items()))


def labelled() -> Labelled:
    """Return the whole set. Raises `FileNotFoundError` where the data is not beside the project."""
    catalogue = _Catalogue()
    request = [*_leaderboard(catalogue), *_tau_bench(catalogue)]
    _operations(catalogue)
    names = catalogue.names()
    questions = tuple(
        Question(source, text, frozenset(names[one] for one in expected), _half(kin))
        for source, text, expected, kin in request
    )
    return Labelled(catalogue.tools(), questions)


_Labelled = tuple[str, str, frozenset[Identity], str]
"""Source, text, expected tools, and what the question has in common with its kin."""


def _leaderboard(catalogue: _Catalogue) -> Iterator[_Labelled]:
    for part in _BFCL_PARTS:
        questions = _lines(DATA / "bfcl" / f"BFCL_v4_{part}.json")
        answers = {
            line["id"]: [name for call in line["ground_truth"] for name in call]
            for line in _lines(DATA / "bfcl" / "possible_answer" / f"BFCL_v4_{part}.json")
        }
        for line in questions:
            offered = {one["name"]: catalogue.add("bfcl", one) for one in line["function"]}
            expected = [offered[name] for name in answers[line["id"]]]
            text = "\n".join(message["content"] for message in line["question"][0])
            yield f"bfcl {part}", text, frozenset(expected), expected[0].name


def _tau_bench(catalogue: _Catalogue) -> Iterator[_Labelled]:
    tools = {
        (entry["domain"], entry["function"]["name"]): catalogue.add(entry["domain"], entry["function"])
        for entry in _document("tau-bench", "tools.json")
    }
    for task in _document("tau-bench", "tasks.json"):
        domain = task["domain"]
        expected = frozenset(tools[domain, action["name"]] for action in task["actions"])
        if expected:
            yield f"tau-bench {domain}", task["instruction"], expected, task["user_id"]


def _operations(catalogue: _Catalogue) -> None:
    """Add API operations, with EventTypes named after the API and its operation."""
    for line in _lines(DATA / "openapi-tools" / "tools.jsonl"):
        api = line["api"].replace("/", "-")
        shown = {
            "name": f"{api}-{line['operationId']}",
            "description": line["description"],
            "parameters": line["schema"],
        }
        catalogue.add(api, shown)
    for declaration in _document("examples", "chatglm3-tools.json"):
        catalogue.add("examples", declaration)


def _tool(identity: Identity, name: str, shown: Mapping[str, Any]) -> Tool:
    try:
        parameters = normalise(shown["parameters"])
    except SchemaError:  # the notation of the source; the words in it are what counts here
        parameters = shown["parameters"]
    return Tool(
        name=name,
        namespace="default",
        event_type=identity.name,
        type=f"test.{identity.namespace}.{identity.name}",
        source=None,
        description=shown["description"],
        parameters=parameters,
        parameters_from="spec.schemaData",
    )


def _half(kin: str) -> Half:
    return "held out" if hashlib.sha256(kin.encode()).digest()[0] % 2 else "development"


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _document(*parts: str) -> list[dict[str, Any]]:
    documents: list[dict[str, Any]] = json.loads(DATA.joinpath(*parts).read_text(encoding="utf-8"))
    return documents
