"""Real declarations: OpenAPI operations, Berkeley's functions, tau-bench, Knative's manifests, CDEvents."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from beckon_contract.schema.parameters import SchemaError, normalise, normalise_text
from tests.contract.oracle import check_schema, is_valid
from tests.shared_data import shared_data


def outcomes(documents: Iterable[object]) -> Counter[str]:
    """Count how documents fare; each result is valid against the metaschema."""
    counted: Counter[str] = Counter()
    for document in documents:
        try:
            schema = normalise(document)
        except SchemaError as error:
            counted[error.reason] += 1
            continue
        check_schema(schema)
        counted["usable"] += 1
    return counted


def schema_data(folder: str) -> Iterator[str]:
    for path in sorted(shared_data("eventtypes", folder).glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            if isinstance(document, dict) and (document.get("spec") or {}).get("schemaData"):
                yield document["spec"]["schemaData"]


def test_all_but_two_of_540_openapi_operations_are_usable() -> None:
    lines = shared_data("openapi-tools", "tools.jsonl").read_text().splitlines()
    counted = outcomes(json.loads(line)["schema"] for line in lines)
    # Two have a pattern that no linear-time engine runs: a surrogate range, and two million repetitions.
    assert counted == {"usable": 538, "InvalidSchema": 2}


def test_every_function_of_the_berkeley_leaderboard_is_usable() -> None:
    documents = [
        function["parameters"]
        for path in sorted(shared_data("bfcl").glob("*.json"))
        for line in path.read_text().splitlines()
        for function in json.loads(line)["function"]
    ]
    assert outcomes(documents) == {"usable": 1677}


def test_every_tool_of_tau_bench_is_unchanged() -> None:
    for tool in json.loads(shared_data("tau-bench", "tools.json").read_text()):
        parameters = tool["function"]["parameters"]
        assert normalise(parameters) == parameters


def test_the_manifests_of_knative_and_of_its_blog_are_usable() -> None:
    text = shared_data("examples", "blog-eventtype.yaml").read_text()
    weather = normalise_text(yaml.safe_load(text)["spec"]["schemaData"])
    assert list(weather["properties"]) == ["location", "unit"]
    schemas = [normalise_text(text) for text in schema_data("yaml")]
    assert [list(schema["properties"]) for schema in schemas] == [
        ["resourceKind", "usage", "unit"],
        ["location", "unit"],
    ]
    assert schemas[0]["properties"]["usage"]["type"] == "number"


def test_cdevents_are_refused_for_their_remote_references_and_usable_once_those_are_bundled() -> None:
    refs = {
        path.name: json.loads(path.read_text())
        for path in shared_data("eventtypes", "from-cdevents", "refs").glob("*")
    }
    checked = 0
    for path in sorted(shared_data("eventtypes", "from-cdevents").glob("*.yaml")):
        document: dict[str, Any] = json.loads(yaml.safe_load(path.read_text())["spec"]["schemaData"])
        assert outcomes([document]) == {"RemoteReference": 1}
        schema = normalise({**document, "$defs": refs})
        instance = json.loads(path.with_name(path.stem + ".valid-instance.json").read_text())
        assert is_valid(schema, instance), path.name
        checked += 1
    assert checked == 48
