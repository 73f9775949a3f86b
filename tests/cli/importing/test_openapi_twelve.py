"""Twelve real descriptions: every operation becomes a usable tool, or there is a reason why not."""

import re
from collections import Counter
from pathlib import Path

import pytest

from beckon_adapter.check import check_rules
from beckon_adapter.rule import parse_rule
from beckon_cli.importing import manifests
from beckon_cli.importing.manifests import Placement
from beckon_cli.importing.report import credential_parts, required_settings
from beckon_contract.catalogue.annotations import HTTP
from beckon_contract.catalogue.builder import Declared, read_declaration
from beckon_contract.catalogue.check import check
from beckon_contract.kubernetes_objects import Resource, parse_manifests
from beckon_contract.resources.tools import declare
from tests.cli.importing.reading import TWELVE, found_in

NAME = re.compile(r"[a-z][a-z0-9_]{1,63}")
MACHINE_MADE = re.compile(
    r"(?:^|_)v\d+(?:_|$)|_using_(?:get|post|put|delete)|controller|__|^(?:get|post)_\w+_id_\w+_id"
)
BECOMES = {  # file: operations, imported, skipped by reason
    "apis.guru.json": (7, 7, {}),
    "circleci.com.json": (22, 22, {}),
    "europeana.eu.json": (9, 9, {}),
    "gitlab.com.json": (358, 358, {}),
    "httpbin.org.json": (78, 73, {"no tool: TRACE sends a request back, for debugging": 5}),
    "notion.com.json": (13, 13, {}),
    "openfigi.com.json": (2, 2, {}),
    "spacetraders.io.json": (40, 40, {}),
    "trello.com.json": (324, 324, {}),
    "weatherbit.io.json": (47, 47, {}),
    "wikimedia.org.json": (35, 35, {}),
    "xkcd.com.json": (2, 2, {}),
}
CREDENTIALS = {
    "circleci.com.json": {"circleci": ["the query parameter circle-token"]},
    "europeana.eu.json": {"europeana-search-record": ["the query parameter wskey"]},
    "gitlab.com.json": {"gitlab": ["the header PRIVATE_HEADER"]},
    "spacetraders.io.json": {"spacetraders": ["a bearer token in Authorization"]},
    "trello.com.json": {"trello": ["the query parameter key", "the query parameter token"]},
    "weatherbit.io.json": {"weatherbit": ["the query parameter key"]},
}
each_of_the_twelve = pytest.mark.parametrize("path", TWELVE, ids=lambda path: path.stem)


def test_all_twelve_are_here() -> None:
    assert {path.name for path in TWELVE} == set(BECOMES)


@each_of_the_twelve
def test_every_operation_is_imported_or_skipped_with_a_reason(path: Path) -> None:
    found = found_in(path)

    reasons = Counter(skipped.reason for skipped in found.skipped)

    assert (len(found.present), len(found.tools), reasons) == BECOMES[path.name]


@each_of_the_twelve
def test_the_manifests_pass_the_check_without_a_finding_and_their_rules_are_valid(path: Path) -> None:
    found = found_in(path)
    placement = Placement()
    text = "".join(file.text for file in manifests.manifest_files(found, placement))

    resources = [each for each in parse_manifests(text, path.name) if isinstance(each, Resource)]
    report = check(resources)
    declared = [read_declaration(each) for each in resources if each.kind == "EventType"]

    assert report.findings == ()
    assert list(check_rules(resources)) == []
    assert report.catalogue.tools.keys() == {tool.name for tool in found.tools}
    for each in declared:
        assert isinstance(each, Declared)
        parse_rule(each.event_type.annotations[HTTP], each.parameters)


@each_of_the_twelve
def test_every_tool_is_declared_to_a_model_with_a_good_name_and_a_description(path: Path) -> None:
    found = found_in(path)
    placement = Placement()
    text = "".join(file.text for file in manifests.manifest_files(found, placement))
    catalogue = check(parse_manifests(text, path.name)).catalogue

    for tool in catalogue.tools.values():
        function = declare(tool)["function"]
        assert NAME.fullmatch(function["name"])
        assert not MACHINE_MADE.search(function["name"])
        assert 3 <= len(function["description"]) <= 1024
        assert not re.search(r"</?[a-z]+>|\]\(http", function["description"])
        for name in function["parameters"]["properties"]:
            assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,63}", name)


@each_of_the_twelve
def test_keys_and_tokens_are_the_credentials_and_no_arguments(path: Path) -> None:
    found = found_in(path)

    needed = {name: [str(part) for part in parts] for name, parts in credential_parts(found).items()}

    assert needed == CREDENTIALS.get(path.name, {})
    for tool in found.tools:
        sent = {part.name for part in tool.credential.parts}
        assert not sent & {*tool.rule.get("query", ()), *tool.rule.get("headers", ())}


def test_a_key_and_a_token_are_two_entries_of_one_credential() -> None:
    path = next(path for path in TWELVE if path.stem == "trello.com")

    said = "\n".join(line.plain for line in required_settings(found_in(path)))

    assert "name: trello, hosts: [trello.com], type: query, as: key, file: trello-key.secret" in said
    assert "name: trello, hosts: [trello.com], type: query, as: token, file: trello-token.secret" in said


def test_names_do_not_depend_on_what_is_chosen() -> None:
    path = next(path for path in TWELVE if path.stem == "trello.com")
    everything = {str(tool.operation): tool.name for tool in found_in(path).tools}

    some = {str(tool.operation): tool.name for tool in found_in(path, "GET /boards/**").tools}

    assert len(some) > 20
    assert some.items() <= everything.items()
