"""What our rules make of arguments that fit our schemas, judged by the description itself."""

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from beckon_adapter.request import build_request
from beckon_adapter.rule import parse_rule
from beckon_adapter.templates import UnfitArgument
from beckon_cli.importing.openapi.importer import Imported
from tests.cli.importing.oracle import Oracle, received
from tests.cli.importing.reading import TWELVE, found_in
from tests.cli.importing.values import arguments

SAMPLE = 12  # tools of each description


@pytest.mark.parametrize("path", TWELVE, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_requests_of_imported_tools_are_what_the_description_asks_for(path: Path) -> None:
    oracle = Oracle(path)
    # OpenAPI knows no query in a path, whatever one of the twelve thinks.
    tools = [tool for tool in found_in(path).tools if "?" not in tool.operation.path]

    judged = sum(judge(oracle, tool) for tool in tools[:: max(1, len(tools) // SAMPLE)])

    assert judged > 0


def judge(oracle: Oracle, tool: Imported) -> int:
    """Return how many requests of a tool were judged and found good."""
    rule = parse_rule(tool.rule_text, tool.parameters)
    judged = 0

    @settings(max_examples=8, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(arguments(tool.parameters))
    def every_request_is_allowed(given_arguments: dict[str, object]) -> None:
        nonlocal judged
        try:
            request = build_request(rule, given_arguments)
        except UnfitArgument:
            return  # an argument that would have left its place in the path or the header
        oracle.judge(
            received(request.method, request.url, request.headers, request.body, tool.credential.parts)
        )
        judged += 1

    every_request_is_allowed()
    return judged


def test_the_oracle_refuses_what_a_description_does_not_allow() -> None:
    path = next(path for path in TWELVE if path.stem == "spacetraders.io")
    tool = next(tool for tool in found_in(path).tools if tool.name == "purchase_cargo")
    rule = parse_rule(tool.rule_text)
    request = build_request(rule, {"shipSymbol": "S", "symbol": "FUEL", "units": "many"})

    with pytest.raises(Exception, match=re.compile("body", re.IGNORECASE)):
        Oracle(path).judge(
            received(request.method, request.url, request.headers, request.body, tool.credential.parts)
        )
