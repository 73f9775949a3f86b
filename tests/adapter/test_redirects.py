"""Redirects: followed where they may lead, and nothing secret goes along."""

from pathlib import Path

import pytest
import trustme

from beckon_adapter.egress.client import Unreachable
from beckon_adapter.egress.hosts import Credential
from beckon_runtime.egress import AllowedHost, NotAllowed
from tests.adapter.plain_api import (
    SECRET,
    ApiAnswer,
    PlainApi,
    answering,
    api_answer,
    closing,
    egress_to,
    get,
    local,
    serving,
    trusting,
)


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://evil.test/",
        "//evil.test/",
        "https://evil.test/",
        "http://user:pass@api.test:{port}/",
        "file:///etc/passwd",
        "gopher://api.test/",
        "http://api.test:{other}/",
        "http://[::ffff:169.254.169.254]/",
    ],
)
async def test_a_redirect_to_elsewhere_is_not_followed(location: str) -> None:
    api = PlainApi()
    async with serving(api) as port, closing(egress_to(local(port))) as egress:
        target = location.format(port=port, other=port + 1)
        api.answers = [ApiAnswer(302, b"", (("location", target),))]
        with pytest.raises((NotAllowed, Unreachable)):
            await egress.send_request(get(f"http://api.test:{port}/"), None, 5)

    assert len(api.requests) == 1


async def test_a_redirect_inside_the_host_is_followed_with_its_headers() -> None:
    api = PlainApi([ApiAnswer(301, b"", (("location", "/new?a=1#part"),)), api_answer({"new": True})])
    async with serving(api) as port, closing(egress_to(local(port))) as egress:
        answer = await egress.send_request(get(f"http://api.test:{port}/old", ("x-a", "b")), None, 5)

    assert answer.body == b'{"new": true}'
    assert [(one.path, one.headers["x-a"]) for one in api.requests] == [("/old", "b"), ("/new?a=1", "b")]


async def test_nothing_secret_follows_a_redirect_to_another_host_that_is_allowed(secret: Path) -> None:
    api = PlainApi()
    other = PlainApi([api_answer({"other": True})])
    async with serving(api) as port, serving(other) as other_port:
        hosts = [
            local(port),
            AllowedHost(host=f"http://other.test:{other_port}", connect=f"127.0.0.1:{other_port}"),
        ]
        credential = Credential(name="key", hosts=(f"http://api.test:{port}",), file=secret)
        api.answers = [ApiAnswer(302, b"", (("location", f"http://other.test:{other_port}/x"),))]
        async with closing(egress_to(*hosts, credentials=[credential])) as egress:
            request = get(f"http://api.test:{port}/", ("x-api-key", "of the rule"), ("cookie", "a=b"))
            answer = await egress.send_request(request, "key", 5)

    assert answer.body == b'{"other": true}'
    assert api.requests[0].headers["authorization"] == f"Bearer {SECRET}"
    assert not {"authorization", "x-api-key", "cookie"} & other.requests[0].headers.keys()


@pytest.mark.parametrize(("status", "method"), [(301, "POST"), (302, "PATCH"), (302, "DELETE")])
async def test_a_redirect_that_would_change_what_is_done_is_not_followed(status: int, method: str) -> None:
    api = PlainApi([ApiAnswer(status, b"", (("location", "/new"),))])
    async with serving(api) as port, closing(egress_to(local(port))) as egress:
        with pytest.raises(NotAllowed, match=f"redirects a {method}"):
            await egress.send_request(get(f"http://api.test:{port}/", method=method, body=b"{}"), None, 5)

    assert len(api.requests) == 1


async def test_a_redirect_that_keeps_method_and_body_is_followed_inside_the_host_alone() -> None:
    api = PlainApi([ApiAnswer(307, b"", (("location", "/new"),)), api_answer({})])
    other = PlainApi()
    async with serving(api) as port, serving(other) as other_port:
        hosts = [
            local(port),
            AllowedHost(host=f"http://b.test:{other_port}", connect=f"127.0.0.1:{other_port}"),
        ]
        async with closing(egress_to(*hosts)) as egress:
            await egress.send_request(get(f"http://api.test:{port}/", method="POST", body=b"{}"), None, 5)
            api.answers = [ApiAnswer(308, b"", (("location", f"http://b.test:{other_port}/"),))]
            with pytest.raises(NotAllowed, match="redirects a POST to b"):
                await egress.send_request(get(f"http://api.test:{port}/", method="POST", body=b"{}"), None, 5)

    assert [(one.method, one.path, one.body) for one in api.requests[:2]] == [
        ("POST", "/", b"{}"),
        ("POST", "/new", b"{}"),
    ]
    assert other.requests == []


async def test_see_other_after_a_post_is_a_get_without_the_body() -> None:
    api = PlainApi([ApiAnswer(303, b"", (("location", "/done"),)), api_answer({})])
    async with serving(api) as port, closing(egress_to(local(port))) as egress:
        request = get(f"http://api.test:{port}/", ("content-type", "text/plain"), method="POST", body=b"x")
        await egress.send_request(request, None, 5)

    assert (api.requests[1].method, api.requests[1].body) == ("GET", b"")
    assert "content-type" not in api.requests[1].headers


async def test_redirects_have_an_end() -> None:
    api = PlainApi([ApiAnswer(302, b"", (("location", "/again"),))])
    async with serving(api) as port, closing(egress_to(local(port))) as egress:
        with pytest.raises(NotAllowed, match="more than 5 times"):
            await egress.send_request(get(f"http://api.test:{port}/"), None, 5)

    assert len(api.requests) == 6


async def test_https_is_never_left_for_http(authority: trustme.CA, certificate: tuple[str, str]) -> None:
    api, plain = PlainApi(), PlainApi()
    async with serving(api, certificate) as port, serving(plain) as plain_port:
        hosts = [AllowedHost(host=f"api.example.com:{port}", private=True), local(plain_port)]
        api.answers = [ApiAnswer(302, b"", (("location", f"http://api.test:{plain_port}/"),))]
        egress = egress_to(*hosts, resolver=answering(["127.0.0.1"]), tls=trusting(authority))
        async with closing(egress):
            with pytest.raises(NotAllowed, match="from https to http"):
                await egress.send_request(get(f"https://api.example.com:{port}/"), None, 5)

    assert plain.requests == []
