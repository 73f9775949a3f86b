"""Credentials belong to the adapter's owner: named, reported, and never an argument."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from beckon_adapter.settings import AdapterSettings
from beckon_cli.importing.openapi.operations import to_slug
from beckon_cli.importing.report import required_settings
from tests.cli.importing.reading import found_in, openapi, written

KEY = {"type": "apiKey", "in": "query", "name": "k"}


def imported(tmp_path: Path, security: Any, schemes: dict[str, Any], *parameters: Any, **options: Any) -> Any:
    operation = {"summary": "Do.", "security": security, "parameters": list(parameters)}
    description = openapi({"/a": {"get": operation}}, components={"securitySchemes": schemes})
    return found_in(written(tmp_path, description), **options)


@pytest.mark.parametrize(
    ("scheme", "part"),
    [
        (KEY, "the query parameter k"),
        ({"type": "apiKey", "in": "header", "name": "X-K"}, "the header X-K"),
        ({"type": "apiKey", "in": "cookie", "name": "sid"}, "the cookie sid"),
        ({"type": "http", "scheme": "Bearer"}, "a bearer token in Authorization"),
        ({"type": "http", "scheme": "basic"}, "a user and a password in Authorization"),
        ({"type": "oauth2", "flows": {}}, "a bearer token in Authorization"),
        ({"type": "openIdConnect", "openIdConnectUrl": "https://a"}, "a bearer token in Authorization"),
    ],
)
def test_every_scheme_becomes_a_credential(tmp_path: Path, scheme: dict[str, Any], part: str) -> None:
    (tool,) = imported(tmp_path, [{"s": []}], {"s": scheme}).tools

    assert tool.rule["credential"] == "pets"
    assert [str(each) for each in tool.credential.parts] == [part]


@pytest.mark.parametrize("scheme", [{"type": "mutualTLS"}, {"type": "http", "scheme": "digest"}])
def test_a_scheme_that_the_adapter_has_not_skips_its_operation(
    tmp_path: Path, scheme: dict[str, Any]
) -> None:
    (skipped,) = imported(tmp_path, [{"s": []}], {"s": scheme}).skipped

    assert "which no rule has" in skipped.reason


def test_what_is_open_to_everybody_is_called_without_unless_a_credential_is_requested(tmp_path: Path) -> None:
    (without,) = imported(tmp_path, [{}, {"s": []}], {"s": KEY}).tools
    (request,) = imported(tmp_path, [{}, {"s": []}], {"s": KEY}, credential="mine").tools

    assert "credential" not in without.rule
    assert request.rule["credential"] == "mine"


def test_a_credential_that_the_description_does_not_show_of_can_be_named(tmp_path: Path) -> None:
    (tool,) = imported(tmp_path, [], {}, credential="mine").tools

    assert tool.rule["credential"] == "mine"


@pytest.mark.parametrize(
    ("name", "description", "secret"),
    [
        ("api_key", "", True),
        ("apikey", "", True),
        ("access_token", "", True),
        ("key", "Your registered API key.", True),
        ("token", "An access token.", True),
        ("key", "The key of the translation.", False),
        ("token", "Where the last page ended.", False),
        ("page_token", "", False),
    ],
)
def test_keys_and_tokens_among_parameters_are_left_to_the_credential(
    tmp_path: Path, name: str, description: str, secret: bool
) -> None:
    parameter = {"name": name, "in": "query", "description": description, "schema": {"type": "string"}}

    (tool,) = imported(tmp_path, [], {}, parameter).tools
    (unchanged,) = imported(tmp_path, [], {}, parameter, keep=frozenset({name})).tools

    assert ("credential" in tool.rule) is secret
    assert (name in tool.parameters["properties"]) is not secret
    assert name in unchanged.parameters["properties"]


def test_the_settings_that_are_printed_are_those_of_the_adapter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = imported(tmp_path, [{"s": []}], {"s": KEY})
    for line in required_settings(found):
        name, _, value = line.plain.partition("=")
        if value:
            monkeypatch.setenv(name, value.strip("'"))

    settings = AdapterSettings()

    assert [host.host for host in settings.allowed_hosts] == ["pets.example"]
    assert [(one.name, one.type, one.parameter) for one in settings.credentials] == [("pets", "query", "k")]


def test_hosts_of_a_private_network_are_marked_as_such(tmp_path: Path) -> None:
    servers = [{"url": "http://shop.default.svc.cluster.local:8080"}]
    found = found_in(written(tmp_path, openapi({"/a": {"get": {"summary": "Do."}}}, servers=servers)))

    said = [line.plain for line in required_settings(found)]

    value = said[1].partition("=")[2].strip('"')
    assert yaml.safe_load(value) == [{"host": servers[0]["url"], "private": True}]


@pytest.mark.parametrize(
    ("title", "short"),
    [("Swagger Petstore - OpenAPI 3.0", "petstore"), ("The Trello REST API", "trello"),
     ("API", "pets-example"), ("2captcha", "api-2captcha")],
)  # fmt: skip
def test_an_api_has_a_short_name(title: str, short: str) -> None:
    assert to_slug(title, "pets.example") == short
