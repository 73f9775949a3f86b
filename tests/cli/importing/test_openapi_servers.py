"""Where an imported API is called: servers with variables, relative ones, and the one that was chosen."""

from pathlib import Path
from typing import Any

from beckon_cli.importing.openapi.openapi3 import ServerChoice
from tests.cli.importing.reading import found_in, openapi, written


def servers_called(tmp_path: Path, *servers: dict[str, Any], **choice: Any) -> list[str]:
    """Return the server that the only operation is called at, or why it is not."""
    description = openapi({"/a": {"get": {"summary": "Do."}}}, servers=list(servers))
    found = found_in(written(tmp_path, description), choice=ServerChoice(**choice))
    return [tool.rule["url"] for tool in found.tools] + [skipped.reason for skipped in found.skipped]


def test_a_server_without_a_host_is_reported(tmp_path: Path) -> None:
    path = {"url": "/v1"}

    assert servers_called(tmp_path, path) == [
        "the description names no host (/v1); give --server https://HOST/PATH"
    ]
    assert servers_called(tmp_path, path, wanted="https://a.example/v1") == ["https://a.example/v1/a"]
    assert servers_called(tmp_path, {"url": "//a.example/"}) == ["https://a.example/a"]


def test_variables_of_a_server_are_filled_by_the_user_else_by_their_defaults(tmp_path: Path) -> None:
    url = "https://{where}.example/{version}"
    variables = {"where": {"default": "a"}, "version": {"default": 2}}

    assert servers_called(tmp_path, {"url": url, "variables": variables}) == ["https://a.example/2/a"]
    assert servers_called(tmp_path, {"url": url}, variables={"where": "b", "version": "3"}) == [
        "https://b.example/3/a"
    ]
    assert servers_called(tmp_path, {"url": url}) == [
        "the server's 'where' has no value; give --server-variable where=VALUE"
    ]


def test_variables_of_a_server_that_the_user_names_are_filled_too(tmp_path: Path) -> None:
    here, path = {"url": "https://a.example/v1"}, "http://here:8000/{version}"

    assert servers_called(tmp_path, here, wanted=path, variables={"version": "v2"}) == [
        "http://here:8000/v2/a"
    ]
    assert servers_called(tmp_path, here, wanted=path) == [
        "the server's 'version' has no value; give --server-variable version=VALUE"
    ]


def test_the_encrypted_one_of_two_servers_is_called_unless_one_is_requested(tmp_path: Path) -> None:
    servers = ({"url": "http://a.example"}, {"url": "https://a.example"})

    assert servers_called(tmp_path, *servers) == ["https://a.example/a"]
    assert servers_called(tmp_path, *servers, wanted="1") == ["http://a.example/a"]
