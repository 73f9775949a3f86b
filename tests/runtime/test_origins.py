"""Which Host and Origin a request may name."""

import pytest

from beckon_runtime.origins import OriginPolicy

Headers = list[tuple[bytes, bytes]]


def headers(host: str | None, origin: str | None = None) -> Headers:
    given = {"host": host, "origin": origin}
    return [(name.encode(), value.encode("latin-1")) for name, value in given.items() if value is not None]


def status(policy: OriginPolicy, host: str | None, origin: str | None = None) -> int:
    problem = policy.refuse(headers(host, origin))
    return 200 if problem is None else problem.status


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", 200),
        ("LOCALHOST:8082", 200),
        ("localhost.:8082", 200),
        ("127.0.0.1:8082", 200),
        ("127.9.9.9", 200),
        ("[::1]:8082", 200),
        ("tools.localhost:8082", 200),
        ("evil.example", 421),
        ("evil.example:8082", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("notlocalhost", 421),
        ("0.0.0.0:8082", 421),
        ("192.168.1.5", 421),
        ("[::]", 421),
        ("localhost@evil.example", 400),
        ("localhost:80:80", 400),
        ("localhost:port", 400),
        ("localhost/", 400),
        ("[", 400),
        ("", 400),
        (None, 400),
    ],
)
def test_a_service_on_loopback_answers_for_names_of_this_machine(host: str | None, expected: int) -> None:
    assert status(OriginPolicy.at("127.0.0.1"), host) == expected


def test_two_hosts_are_refused_even_where_one_of_them_is_right() -> None:
    policy = OriginPolicy.at("::1")

    problem = policy.refuse([(b"host", b"localhost"), (b"host", b"evil.example")])

    assert problem is not None
    assert problem.status == 400


@pytest.mark.parametrize(
    ("host", "origin", "expected"),
    [
        ("localhost:8082", "http://localhost:8082", 200),
        ("localhost:8082", "HTTP://LocalHost:8082", 200),
        ("localhost", "http://localhost:80", 200),
        ("localhost:8082", "http://localhost:3000", 403),
        ("localhost:8082", "http://127.0.0.1:8082", 403),
        ("localhost:8082", "https://evil.example", 403),
        ("localhost:8082", "http://localhost:8082.evil.example", 403),
        ("localhost:8082", "http://localhost.evil.example:8082", 403),
        ("localhost:8082", "null", 403),
        ("localhost:8082", "", 403),
        ("evil.example:8082", "http://evil.example:8082", 421),
    ],
)
def test_only_pages_of_the_port_itself_may_call_it(host: str, origin: str, expected: int) -> None:
    assert status(OriginPolicy.at("127.0.0.1"), host, origin) == expected


def test_pages_of_other_ports_of_this_machine_may_call_a_service_that_says_so() -> None:
    policy = OriginPolicy.at("127.0.0.1", local_pages=True)

    assert status(policy, "127.0.0.1:8080", "http://localhost:6274") == 200
    assert status(policy, "127.0.0.1:8080", "http://localhost.evil.example:6274") == 403


def test_settings_add_names_and_pages_to_those_of_loopback() -> None:
    policy = OriginPolicy.at("127.0.0.1", "host.docker.internal", "https://chat.example.com/")

    assert status(policy, "host.docker.internal:8080") == 200
    assert status(policy, "localhost:8080", "https://chat.example.com") == 200
    assert status(policy, "evil.example") == 421
    assert status(policy, "localhost:8080", "https://chat.example.com.evil.example") == 403


def test_a_service_of_a_network_checks_nothing_until_names_are_set() -> None:
    assert status(OriginPolicy.at("0.0.0.0"), "tool.team.svc.cluster.local", "https://page.example") == 200
    assert status(OriginPolicy.at("0.0.0.0"), None) == 200


def test_a_service_of_a_network_with_names_answers_for_them_and_for_addresses() -> None:
    policy = OriginPolicy.at("0.0.0.0", "agent.example.com")

    assert status(policy, "Agent.example.com:443", "https://agent.example.com") == 200
    assert status(policy, "10.1.2.3:8080") == 200  # a probe of the kubelet
    assert status(policy, "localhost") == 421
    assert status(policy, "agent.example.com", "https://other.example.com") == 403


@pytest.mark.parametrize("hosts", ["http://a.example", "a.example:80", "*.example", "a b"])
def test_a_name_that_is_no_host_is_refused_with_the_cure(hosts: str) -> None:
    with pytest.raises(ValueError, match="is no host name; write names without scheme"):
        OriginPolicy.at("127.0.0.1", hosts)


@pytest.mark.parametrize("origins", ["a.example", "*", "https://a.example/path", "null"])
def test_an_origin_that_browsers_never_send_is_refused_with_the_cure(origins: str) -> None:
    with pytest.raises(ValueError, match="is no origin; write scheme, host and port"):
        OriginPolicy.at("127.0.0.1", origins=origins)
