"""Which hosts the owner's setting allows."""

import pytest
from pydantic import ValidationError

from beckon_adapter.egress.hosts import allow_hosts
from beckon_adapter.settings import AdapterSettings
from beckon_runtime.egress import AllowedHost, AllowedHosts, NotAllowed


def allowed(*hosts: str) -> AllowedHosts:
    return allow_hosts(AllowedHost(host=host) for host in hosts)


@pytest.mark.parametrize(
    ("entry", "scheme", "host", "port"),
    [
        ("api.example.com", "https", "api.example.com", None),
        ("api.example.com", "https", "API.Example.COM", 443),
        ("api.example.com", "https", "api.example.com.", None),
        ("https://api.example.com/", "https", "api.example.com", None),
        ("api.example.com:8443", "https", "api.example.com", 8443),
        ("http://api.example.com", "http", "api.example.com", 80),
        ("*.example.com", "https", "a.example.com", None),
        ("*.example.com", "https", "a.b.example.com", None),
        ("http://[::1]:80", "http", "::1", None),
        ("http://10.0.0.1:8080", "http", "10.0.0.1", 8080),
    ],
)
def test_an_entry_opens_what_it_names(entry: str, scheme: str, host: str, port: int | None) -> None:
    assert allowed("other.example", entry).find(scheme, host, port).host == entry


@pytest.mark.parametrize(
    ("entry", "scheme", "host", "port"),
    [
        ("api.example.com", "http", "api.example.com", None),
        ("api.example.com", "https", "api.example.com", 8443),
        ("api.example.com", "http", "api.example.com", 443),
        ("api.example.com", "https", "evil-api.example.com", None),
        ("api.example.com", "https", "api.example.com.evil.example", None),
        ("api.example.com", "https", "example.com", None),
        ("*.example.com", "https", "example.com", None),
        ("*.example.com", "https", ".example.com", None),
        ("*.example.com", "https", "evilexample.com", None),
        ("*.example.com", "https", "a.example.com.evil.example", None),
        ("http://127.0.0.1", "http", "2130706433", None),
        ("http://127.0.0.1", "http", "0x7f.1", None),
        ("http://127.0.0.1", "http", "0177.0.0.1", None),
        ("http://127.0.0.1", "http", "127.1", None),
        ("http://127.0.0.1", "http", "::ffff:127.0.0.1", None),
    ],
)
def test_an_entry_opens_nothing_else(entry: str, scheme: str, host: str, port: int | None) -> None:
    with pytest.raises(NotAllowed, match="BECKON_ADAPTER_ALLOWED_HOSTS"):
        allowed(entry).find(scheme, host, port)


def test_nothing_is_allowed_without_the_setting() -> None:
    with pytest.raises(NotAllowed, match=r"may not call https://api\.example\.com:444"):
        allowed().find("https", "api.example.com", 444)


@pytest.mark.parametrize(
    "entry", ["*", "*.com", "https://*", "ftp://a.example", "a b", "a.*.example", "a@b.example", ""]
)
def test_an_entry_that_says_too_much_or_nothing_is_refused(entry: str) -> None:
    with pytest.raises(ValidationError):
        AllowedHost(host=entry)


def test_the_setting_is_names_or_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BECKON_ADAPTER_ALLOWED_HOSTS", "api.example.com, *.example.org")
    monkeypatch.setenv(
        "BECKON_ADAPTER_CREDENTIALS",
        "[{name: a, hosts: [api.example.com], type: header, as: X-Key, file: /k}]",
    )
    settings = AdapterSettings()
    assert [entry.host for entry in settings.allowed_hosts] == ["api.example.com", "*.example.org"]
    assert settings.credentials[0].parameter == "X-Key"

    monkeypatch.setenv(
        "BECKON_ADAPTER_ALLOWED_HOSTS", '[a.example, {host: "http://b.example:80", private: true}]'
    )
    entries = AdapterSettings().allowed_hosts
    assert [(entry.host, entry.private) for entry in entries] == [
        ("a.example", False),
        ("http://b.example:80", True),
    ]
