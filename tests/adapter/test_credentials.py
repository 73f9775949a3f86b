"""Credentials: sent as their owner says, to their own hosts alone, and never shown."""

import os
from pathlib import Path

import pytest

from beckon_adapter.egress.hosts import Credential, NoCredential
from tests.adapter.plain_api import SECRET, PlainApi, api_answer, closing, egress_to, get, local, serving


def write(file: Path, content: str | None) -> None:
    if content is None:
        file.unlink()
    else:
        file.write_text(content)


async def test_no_netrc_adds_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine api.test login user password pass\n")
    monkeypatch.setenv("NETRC", os.fspath(netrc))
    api = PlainApi()
    async with serving(api) as port, closing(egress_to(local(port))) as egress:
        await egress.send_request(get(f"http://api.test:{port}/"), None, 5)

    assert "authorization" not in api.requests[0].headers


@pytest.mark.parametrize(
    ("type_", "name", "content", "found"),
    [
        ("bearer", "", SECRET, ("authorization", f"Bearer {SECRET}")),
        ("basic", "", "user:" + SECRET, ("authorization", "Basic dXNlcjpzM2NyM3Qtb2YtdGhlLW93bmVy")),
        ("header", "X-API-Key", SECRET, ("x-api-key", SECRET)),
        ("query", "api key", SECRET, ("", f"/?a=1&api%20key={SECRET}")),
    ],
)
async def test_a_credential_is_sent_as_the_owner_says(
    type_: str, name: str, content: str, found: tuple[str, str], secret: Path
) -> None:
    write(secret, content)
    api = PlainApi()
    async with serving(api) as port:
        credential = Credential.model_validate(
            {"name": "key", "hosts": [f"http://api.test:{port}"], "type": type_, "as": name, "file": secret}
        )
        async with closing(egress_to(local(port), credentials=[credential])) as egress:
            await egress.send_request(get(f"http://api.test:{port}/?a=1"), "key", 5)

    header, value = found
    assert (api.requests[0].headers[header] if header else api.requests[0].path) == value


def part(kind: str, name: str, port: int, file: Path) -> Credential:
    return Credential.model_validate(
        {"name": "key", "hosts": [f"http://api.test:{port}"], "type": kind, "as": name, "file": file}
    )


async def test_all_entries_of_one_name_are_sent(tmp_path: Path) -> None:
    key, token = tmp_path / "key", tmp_path / "token"
    write(key, "the-key")
    write(token, "the-token")
    api = PlainApi()
    async with serving(api) as port:
        both = [part("query", "key", port, key), part("query", "token", port, token)]
        async with closing(egress_to(local(port), credentials=both)) as egress:
            await egress.send_request(get(f"http://api.test:{port}/?a=1"), "key", 5)

    assert api.requests[0].path == "/?a=1&key=the-key&token=the-token"


async def test_entries_that_send_the_same_thing_are_refused(secret: Path) -> None:
    write(secret, "the-key")
    api = PlainApi()
    async with serving(api) as port:
        twice = [part("header", "X-Key", port, secret), part("header", "x-key", port, secret)]
        async with closing(egress_to(local(port), credentials=twice)) as egress:
            with pytest.raises(NoCredential, match="would send one thing twice"):
                await egress.send_request(get(f"http://api.test:{port}/"), "key", 5)

    assert api.requests == []


async def test_a_credential_goes_to_its_own_hosts_alone_and_has_to_exist(secret: Path) -> None:
    api = PlainApi()
    async with serving(api) as port:
        credential = Credential(name="key", hosts=("api.example.com",), file=secret)
        async with closing(egress_to(local(port), credentials=[credential])) as egress:
            with pytest.raises(NoCredential, match="'key' is not for api"):
                await egress.send_request(get(f"http://api.test:{port}/"), "key", 5)
            with pytest.raises(NoCredential, match="has no credential 'other'"):
                await egress.send_request(get(f"http://api.test:{port}/"), "other", 5)

    assert api.requests == []


async def test_neither_rule_nor_call_replaces_a_credential(secret: Path) -> None:
    api = PlainApi()
    async with serving(api) as port:
        places = {"query": "api_key", "header": "X-Key"}
        credentials = [
            Credential.model_validate(
                {"name": kind, "hosts": [f"http://api.test:{port}"], "type": kind, "as": name, "file": secret}
            )
            for kind, name in places.items()
        ]
        async with closing(egress_to(local(port), credentials=credentials)) as egress:
            with pytest.raises(NoCredential, match="api_key"):
                await egress.send_request(get(f"http://api.test:{port}/?api_key=mine"), "query", 5)
            with pytest.raises(NoCredential, match="X-Key"):
                await egress.send_request(get(f"http://api.test:{port}/", ("x-key", "mine")), "header", 5)

    assert api.requests == []


async def test_a_credential_may_change_and_may_be_missing(
    secret: Path, caplog: pytest.LogCaptureFixture
) -> None:
    api = PlainApi()
    async with serving(api) as port:
        credential = Credential(name="key", hosts=(f"http://api.test:{port}",), file=secret)
        async with closing(egress_to(local(port), credentials=[credential])) as egress:
            await egress.send_request(get(f"http://api.test:{port}/"), "key", 5)
            write(secret, "rotated")
            await egress.send_request(get(f"http://api.test:{port}/"), "key", 5)
            write(secret, None)
            with pytest.raises(NoCredential, match="'key' is not there"):
                await egress.send_request(get(f"http://api.test:{port}/"), "key", 5)
            write(secret, "two\nlines")
            with pytest.raises(NoCredential):
                await egress.send_request(get(f"http://api.test:{port}/"), "key", 5)

    assert [one.headers["authorization"] for one in api.requests] == [f"Bearer {SECRET}", "Bearer rotated"]
    assert "No such file" in caplog.text
    assert "rotated" not in caplog.text


async def test_an_answer_that_repeats_the_credential_comes_without_it(secret: Path) -> None:
    write(secret, f"user:{SECRET}/+")
    encoded = "dXNlcjpzM2NyM3Qtb2YtdGhlLW93bmVyLys="
    api = PlainApi(
        [
            api_answer(
                {"you": f"user:{SECRET}/+", "sent": encoded, "quoted": SECRET + "%2F%2B", "x": SECRET + "/+"}
            )
        ]
    )
    async with serving(api) as port:
        credential = Credential(name="key", hosts=(f"http://api.test:{port}",), type="basic", file=secret)
        async with closing(egress_to(local(port), credentials=[credential])) as egress:
            answer = await egress.send_request(get(f"http://api.test:{port}/"), "key", 5)

    assert SECRET.encode() not in answer.body
    assert encoded.encode() not in answer.body
