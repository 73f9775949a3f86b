"""The table of Knative's requirements names tests that exist, and says how the class differs."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
SECTIONS = yaml.safe_load((ROOT / "docs" / "conformance.yaml").read_text("utf-8"))["sections"]
RESULTS = {"differs", "by", "not_applicable"}
LEVELS = {"MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "RECOMMENDED"}


def rows() -> Iterator[Mapping[str, Any]]:
    """Yield the rows of all sections."""
    for section in SECTIONS:
        yield from section["rows"]


def functions_of(path: Path) -> set[str]:
    """Return the names of the functions of a module."""
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("path", sorted({test.split("::")[0] for row in rows() for test in row["tests"]}))
def test_the_named_tests_exist(path: str) -> None:
    named = {test.split("::")[1] for row in rows() for test in row["tests"] if test.startswith(f"{path}::")}

    assert named <= functions_of(ROOT / "tests" / path)


def test_each_requirement_is_there_once_and_complete() -> None:
    assert {section["title"] for section in SECTIONS} > {"Delivery over HTTP", "Brokers", "Triggers"}
    assert set().union(*(row.keys() for row in rows())) == {"level", "says", "tests"} | RESULTS
    for row in rows():
        assert row["level"] in LEVELS, row
        assert row["tests"], row
        assert len(RESULTS & row.keys()) <= 1, row
    for section in SECTIONS:
        repeated = Counter(row["says"] for row in section["rows"]).most_common(1)
        assert repeated[0][1] == 1, repeated


def test_the_data_plane_and_control_plane_are_tried_on_the_cluster() -> None:
    """Each test of the class on the cluster is for a requirement, or for something that is ours."""
    folder = ROOT / "tests" / "cluster" / "broker_class"
    tests = {
        f"cluster/broker_class/{path.name}::{name}"
        for path in folder.glob("test_*_plane.py")
        for name in functions_of(path)
        if name.startswith("test_")
    }
    ours = {"cluster/broker_class/test_control_plane.py::test_a_wrong_key_of_the_configuration_is_named"}

    assert tests - {test for row in rows() for test in row["tests"]} == ours
