"""Egress: no request leaves for a host or an address without permission."""

import gzip
import zlib

import httpx2
import pytest
import trustme

from beckon_adapter.egress.client import CheckedNetwork, TooLarge, Unreachable
from beckon_runtime.egress import AllowedHost, NotAllowed
from tests.adapter.plain_api import (
    LIMIT,
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


async def test_a_request_arrives_as_it_was_built() -> None:
    api = PlainApi([api_answer({"ok": True})])
    async with serving(api) as port, closing(egress_to(local(port))) as egress:
        url = f"http://api.test:{port}/a%2Fb/%7Bx%7D/%252e?q=a%20b&l=1,2&p%5Ba%5D=%7C&plus=%2B"

        answer = await egress.send_request(get(url, ("x-a", "b"), method="PUT", body=b"{}"), None, 5)

    assert (answer.status, answer.media_type, answer.body) == (200, "application/json", b'{"ok": true}')
    (sent_request,) = api.requests
    assert (sent_request.method, sent_request.body, sent_request.headers["x-a"]) == ("PUT", b"{}", "b")
    assert sent_request.path == "/a%2Fb/%7Bx%7D/%252e?q=a%20b&l=1,2&p%5Ba%5D=%7C&plus=%2B"
    assert sent_request.headers["host"] == f"api.test:{port}"


@pytest.mark.parametrize(
    "url",
    [
        "http://other.test/",
        "https://api.test:{port}/",
        "http://api.test/",
        "http://127.0.0.1:{port}/",
        "ftp://api.test/",
    ],
)
async def test_what_is_not_allowed_is_not_called(url: str) -> None:
    api = PlainApi()
    async with serving(api) as port, closing(egress_to(local(port))) as egress:
        with pytest.raises(NotAllowed, match="BECKON_ADAPTER_ALLOWED_HOSTS"):
            await egress.send_request(get(url.format(port=port)), None, 5)

    assert api.requests == []


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "127.1", "2130706433", "0x7f000001", "017700000001", "[::1]"]
)
async def test_a_host_that_is_allowed_may_not_lead_to_this_machine(host: str) -> None:
    """The system's resolver reads odd forms of addresses: what counts is what it makes of them."""
    async with closing(egress_to(AllowedHost(host=f"http://{host}:80"))) as egress:
        with pytest.raises(NotAllowed, match="is not on the public internet"):
            await egress.send_request(get(f"http://{host}:80/"), None, 5)


@pytest.mark.parametrize(
    ("addresses", "why"),
    [
        (["127.0.0.1"], "127.0.0.1 is not on the public internet; if it should be, write private: true"),
        (["169.254.169.254"], "a cloud's metadata"),
        (["8.8.8.8", "10.0.0.1"], "10.0.0.1 is not on the public internet"),
        (["::ffff:127.0.0.1"], "is not on the public internet"),
        (["64:ff9b::a9fe:a9fe"], "a cloud's metadata"),
        (["fe80::1%1"], "link-local"),
    ],
)
async def test_every_address_of_a_name_is_checked(addresses: list[str], why: str) -> None:
    allowed = AllowedHost(host="http://api.test")
    async with closing(egress_to(allowed, resolver=answering(addresses))) as egress:
        with pytest.raises(NotAllowed, match="may not call") as caught:
            await egress.send_request(get("http://api.test/"), None, 5)

    assert why in str(caught.value)


async def test_a_private_host_may_be_on_this_machine_but_never_at_the_metadata() -> None:
    api = PlainApi()
    async with serving(api) as port:
        private = AllowedHost(host=f"http://api.test:{port}", private=True)
        resolver = answering(["127.0.0.1"])
        async with closing(egress_to(private, resolver=resolver)) as egress:
            assert (await egress.send_request(get(f"http://api.test:{port}/"), None, 5)).status == 200
        async with closing(egress_to(private, resolver=answering(["169.254.169.254"]))) as egress:
            with pytest.raises(NotAllowed, match="metadata"):
                await egress.send_request(get(f"http://api.test:{port}/"), None, 5)


async def test_a_name_that_changes_its_address_after_the_check_gains_nothing() -> None:
    """DNS rebinding: the first answer is public, the second private; the second is never requested."""
    sent_request: list[str] = []

    async def rebinding(name: str, port: int) -> list[str]:
        sent_request.append(name)
        return ["192.0.2.1" if len(sent_request) > 1 else "127.0.0.1"]

    api = PlainApi()
    async with serving(api) as port:
        host = AllowedHost(host=f"http://api.test:{port}", private=True)
        async with closing(egress_to(host, resolver=rebinding)) as egress:
            await egress.send_request(get(f"http://api.test:{port}/"), None, 5)
            await egress.send_request(get(f"http://api.test:{port}/"), None, 5)

    assert sent_request == ["api.test"]
    assert len(api.requests) == 2


async def test_a_later_connection_checks_its_address_anew() -> None:
    resolver = answering(["127.0.0.1"], ["169.254.169.254"])
    api = PlainApi([api_answer({}, 200, ("connection", "close"))])
    async with serving(api) as port:
        host = AllowedHost(host=f"http://api.test:{port}", private=True)
        async with closing(egress_to(host, resolver=resolver)) as egress:
            await egress.send_request(get(f"http://api.test:{port}/"), None, 5)
            with pytest.raises(NotAllowed, match="metadata"):
                await egress.send_request(get(f"http://api.test:{port}/"), None, 5)

    assert len(api.requests) == 1


async def test_tls_and_the_host_header_go_by_the_name_and_the_connection_by_the_address(
    authority: trustme.CA, certificate: tuple[str, str]
) -> None:
    api = PlainApi()
    async with serving(api, certificate) as port:
        host = AllowedHost(host=f"api.example.com:{port}", private=True)
        egress = egress_to(host, resolver=answering(["127.0.0.1"]), tls=trusting(authority))
        async with closing(egress):
            answer = await egress.send_request(get(f"https://api.example.com:{port}/"), None, 5)

    assert answer.status == 200
    assert api.requests[0].headers["host"] == f"api.example.com:{port}"


async def test_a_certificate_for_another_name_is_refused(
    authority: trustme.CA, certificate: tuple[str, str]
) -> None:
    async with serving(PlainApi(), certificate) as port:
        host = AllowedHost(host=f"other.example.com:{port}", private=True)
        egress = egress_to(host, resolver=answering(["127.0.0.1"]), tls=trusting(authority))
        async with closing(egress):
            with pytest.raises(Unreachable, match="ConnectError") as caught:
                await egress.send_request(get(f"https://other.example.com:{port}/"), None, 5)

    assert not caught.value.sent


async def test_the_second_address_is_tried_where_the_first_does_not_answer() -> None:
    api = PlainApi()
    async with serving(api) as port:
        host = AllowedHost(host=f"http://api.test:{port}", private=True)
        async with closing(egress_to(host, resolver=answering(["127.0.0.2", "127.0.0.1"]))) as egress:
            assert (await egress.send_request(get(f"http://api.test:{port}/"), None, 5)).status == 200


async def test_the_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy, api = PlainApi(), PlainApi()
    async with serving(proxy) as proxy_port, serving(api) as port:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy_port}")
        async with closing(egress_to(local(port))) as egress:
            await egress.send_request(get(f"http://api.test:{port}/"), None, 5)

    assert (len(proxy.requests), len(api.requests)) == (0, 1)


async def test_no_socket_of_this_machine_is_an_api() -> None:
    with pytest.raises(NotAllowed):
        await CheckedNetwork(egress_to().allowed).connect_unix_socket("/run/docker.sock")


async def test_an_answer_has_a_largest_size_packed_or_not() -> None:
    api = PlainApi()
    async with serving(api) as port, closing(egress_to(local(port))) as egress:
        for body, packing in (
            (b"x" * (LIMIT + 1), "identity"),
            (gzip.compress(b"x" * (LIMIT + 1)), "gzip"),
            (zlib.compress(b"x" * 10_000_000), "deflate"),
        ):
            api.answers = [api_answer(body, 200, ("content-encoding", packing))]
            with pytest.raises(TooLarge, match=f"more than {LIMIT} bytes"):
                await egress.send_request(get(f"http://api.test:{port}/"), None, 5)
        api.answers = [api_answer(gzip.compress(b'{"a": 1}'), 200, ("content-encoding", "gzip"))]
        assert (await egress.send_request(get(f"http://api.test:{port}/"), None, 5)).body == b'{"a": 1}'
        api.answers = [api_answer(b"no gzip", 200, ("content-encoding", "gzip"))]
        with pytest.raises(Unreachable, match="cannot be unpacked"):
            await egress.send_request(get(f"http://api.test:{port}/"), None, 5)
        api.answers = [api_answer(b"x", 200, ("content-encoding", "br"))]
        with pytest.raises(Unreachable, match="was not requested"):
            await egress.send_request(get(f"http://api.test:{port}/"), None, 5)


async def test_it_is_reported_whether_a_request_may_have_arrived() -> None:
    api = PlainApi([ApiAnswer(200, b"half", seconds=3)])
    async with serving(api) as port, closing(egress_to(local(port))) as egress:
        with pytest.raises(Unreachable, match="did not answer within") as slow:
            await egress.send_request(get(f"http://api.test:{port}/"), None, 1)
        api.answers = [ApiAnswer(200, b"half", (("content-length", "100"),), breaks_off=True)]
        with pytest.raises(Unreachable, match="broke off") as broken:
            await egress.send_request(get(f"http://api.test:{port}/"), None, 5)
    async with closing(egress_to(local(port))) as egress:
        with pytest.raises(Unreachable, match="cannot be reached") as absent:
            await egress.send_request(get(f"http://api.test:{port}/"), None, 5)

    assert (slow.value.sent, broken.value.sent, absent.value.sent) == (True, True, False)


async def test_the_transport_knows_no_other_network() -> None:
    """The pool is one that httpx2 would have made itself: an upgrade must not bring its own back."""
    egress = egress_to(resolver=answering(["8.8.8.8"]))
    async with closing(egress):
        request = httpx2.Request("GET", "http://not-allowed.test/")
        with pytest.raises(NotAllowed):
            await egress.client.send(request)
