"""Credentials of a kubeconfig, in each form that it may have."""

import asyncio
import base64
import json
import os
import stat
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme

from beckon_sources import kubeconfig
from beckon_sources.api_client import ApiClient, connect, find_credentials
from beckon_sources.api_types import NotConfigured, Refused, Unreachable
from tests.sources.secure_server import PATH, SecureServer, secure_server


def write_kubeconfig(folder: Path, server: str, user: Mapping[str, Any], **cluster: str | bool) -> str:
    """Write a kubeconfig with one cluster, user and context."""
    path = folder / "kubeconfig"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": dict(user)}],
    }
    path.write_text(json.dumps(document))
    return str(path)


def authority_data(server: SecureServer) -> str:
    return base64.b64encode(server.authority.cert_pem.bytes()).decode()


def write_client_certificate(folder: Path, authority: trustme.CA) -> dict[str, str]:
    certificate = authority.issue_cert("ada@example.com")
    certificate.cert_chain_pems[0].write_to_path(str(folder / "client.crt"))
    certificate.private_key_pem.write_to_path(str(folder / "client.key"))
    return {"client-certificate": "client.crt", "client-key": "client.key"}


async def get_by(paths: str) -> Any:
    async with await connect("beckon-test", paths) as client:
        return await client.get(PATH)


async def test_a_kubeconfig_with_a_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("of-a-file\n")
    async with secure_server("Bearer written", "Bearer of-a-file") as server:
        data = {"certificate-authority-data": authority_data(server)}
        for user in ({"token": "written"}, {"tokenFile": "token"}):
            assert await get_by(write_kubeconfig(tmp_path, server.url, user, **data)) == {"kind": "Secret"}

    assert server.refused == 0


async def test_a_kubeconfig_with_a_name_and_a_password(tmp_path: Path) -> None:
    basic = base64.b64encode(b"ada:secret").decode()
    async with secure_server(f"Basic {basic}") as server:
        data = {"certificate-authority-data": authority_data(server)}
        user = {"username": "ada", "password": "secret"}

        assert await get_by(write_kubeconfig(tmp_path, server.url, user, **data)) == {"kind": "Secret"}


async def test_a_kubeconfig_with_a_client_certificate_in_files_or_in_itself(tmp_path: Path) -> None:
    clients = trustme.CA()
    files = write_client_certificate(tmp_path, clients)
    data = {
        f"{name}-data": base64.b64encode((tmp_path / file).read_bytes()).decode()
        for name, file in files.items()
    }
    async with secure_server(clients=clients) as server:
        server.authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
        for user in (files, data):
            path = write_kubeconfig(tmp_path, server.url, user, **{"certificate-authority": "ca.crt"})
            assert await get_by(path) == {"kind": "Secret"}

    assert server.refused == 0


async def test_a_kubeconfig_that_trusts_any_server(tmp_path: Path) -> None:
    async with secure_server("Bearer t") as server:
        trusting = {"insecure-skip-tls-verify": True}
        with pytest.raises(Unreachable, match=r"(?i)certificate"):
            await get_by(write_kubeconfig(tmp_path, server.url, {"token": "t"}))

        assert await get_by(write_kubeconfig(tmp_path, server.url, {"token": "t"}, **trusting))


async def test_a_kubeconfig_with_another_name_in_the_servers_certificate(tmp_path: Path) -> None:
    async with secure_server("Bearer t", host="kubernetes.default") as server:
        data = {"certificate-authority-data": authority_data(server)}
        with pytest.raises(Unreachable, match=r"(?i)certificate"):
            await get_by(write_kubeconfig(tmp_path, server.url, {"token": "t"}, **data))
        named = data | {"tls-server-name": "kubernetes.default"}

        assert await get_by(write_kubeconfig(tmp_path, server.url, {"token": "t"}, **named))


@asynccontextmanager
async def proxy_to(port: int) -> AsyncIterator[tuple[str, list[str]]]:
    """Yield the URL of a proxy that takes CONNECT, and the lines that it was sent."""
    connects: list[str] = []

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        connects.append(head.decode().splitlines()[0])
        there, back = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(pipe(reader, back), pipe(there, writer), return_exceptions=True)

    proxy = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}", connects
    finally:
        proxy.close()


async def test_a_kubeconfig_with_a_proxy(tmp_path: Path) -> None:
    async with (
        secure_server("Bearer t", host="api.cluster.test") as server,
        proxy_to(server.port) as (proxy, connects),
    ):
        data = {"certificate-authority-data": authority_data(server), "proxy-url": proxy}
        path = write_kubeconfig(tmp_path, "https://api.cluster.test:6443", {"token": "t"}, **data)

        assert await get_by(path) == {"kind": "Secret"}

    assert connects == ["CONNECT api.cluster.test:6443 HTTP/1.1"]


async def test_a_proxy_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        secure_server("Bearer t", host="api.cluster.test") as server,
        proxy_to(server.port) as (proxy, connects),
    ):
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        data = {"certificate-authority-data": authority_data(server)}
        path = write_kubeconfig(tmp_path, "https://api.cluster.test:6443", {"token": "t"}, **data)

        assert await get_by(path) == {"kind": "Secret"}

    assert len(connects) == 1


def write_plugin(folder: Path, status: str) -> dict[str, Any]:
    """Write an exec plugin that prints this status; return its part of a user."""
    plugin = folder / "plugin"
    credential = f'{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", {status}}}'
    plugin.write_text(f"#!{sys.executable}\nprint('''{credential}''')\n")
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin)}}


async def test_a_plugin_is_run_again_once_its_token_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubeconfig, "_RELOAD_SECONDS", 0.0)
    user = write_plugin(tmp_path, '"status": {"token": "first"}')
    async with secure_server("Bearer first") as server:
        data = {"certificate-authority-data": authority_data(server)}
        path = write_kubeconfig(tmp_path, server.url, user, **data)
        async with await connect("beckon-test", path) as client:
            await client.get(PATH)
            write_plugin(tmp_path, '"status": {"token": "second"}')
            server.authorizations = {"Bearer second"}

            await asyncio.gather(client.get(PATH), client.get(PATH))


async def test_a_plugin_may_bring_a_client_certificate(tmp_path: Path) -> None:
    clients = trustme.CA()
    write_client_certificate(tmp_path, clients)
    texts = {name: (tmp_path / name).read_text() for name in ("client.crt", "client.key")}
    pair = {"clientCertificateData": texts["client.crt"], "clientKeyData": texts["client.key"]}
    user = write_plugin(tmp_path, f'"status": {json.dumps(pair)}'.replace("\\", "\\\\"))
    async with secure_server(clients=clients) as server:
        data = {"certificate-authority-data": authority_data(server)}

        assert await get_by(write_kubeconfig(tmp_path, server.url, user, **data)) == {"kind": "Secret"}


async def test_a_refused_kubeconfig_is_read_again_every_ten_seconds_at_most(tmp_path: Path) -> None:
    async with secure_server() as server:
        data = {"certificate-authority-data": authority_data(server)}
        path = write_kubeconfig(tmp_path, server.url, {"token": "t"}, **data)
        async with await connect("beckon-test", path) as client:
            for _ in range(3):
                with pytest.raises(Refused, match="Unauthorized"):
                    await client.get(PATH)

    assert server.refused == 3, "none was sent again"


async def test_several_kubeconfigs_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with secure_server("Bearer t") as server:
        data = {"certificate-authority-data": authority_data(server)}
        write_kubeconfig(tmp_path, server.url, {"token": "t"}, **data)
        whole = json.loads((tmp_path / "kubeconfig").read_text())
        users = {"apiVersion": "v1", "kind": "Config", "users": whole.pop("users")}
        (tmp_path / "users").write_text(json.dumps(users))
        (tmp_path / "kubeconfig").write_text(json.dumps({**whole, "users": []}))
        paths = f"{tmp_path / 'kubeconfig'}{os.pathsep}{tmp_path / 'missing'}{os.pathsep}{tmp_path / 'users'}"
        monkeypatch.setenv("KUBECONFIG", paths)
        client = ApiClient(await find_credentials(), "beckon-test")
        async with client:
            assert await client.get(PATH) == {"kind": "Secret"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "there is no kubeconfig"),
        ("{]", "cannot be used"),
        ("{}", "current-context"),
        ("", "cannot be used"),
    ],
    ids=["missing", "broken", "empty", "nothing"],
)
async def test_a_kubeconfig_that_cannot_be_used_is_refused_at_once(
    content: str | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if content is not None:
        (tmp_path / "config").write_text(content)
    path = str(tmp_path / "config")
    monkeypatch.setenv("KUBECONFIG", path)

    for given in (None, path):
        with pytest.raises(NotConfigured, match=r"or set KUBECONFIG to a kubeconfig$") as caught:
            await find_credentials(given)
        assert said in str(caught.value)


async def test_a_certificate_that_is_missing_is_reported_at_the_start(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path, "https://127.0.0.1:1", {}, **{"certificate-authority": "missing.crt"})

    with pytest.raises(NotConfigured, match=r"missing\.crt"):
        await connect("beckon-test", path)


async def test_without_the_package_a_kubeconfig_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the images of shim, operator and tools, which run in Pods alone."""
    path = write_kubeconfig(tmp_path, "https://127.0.0.1:1", {"token": "t"})
    monkeypatch.delitem(sys.modules, "beckon_sources.kubeconfig")
    monkeypatch.delattr("beckon_sources.kubeconfig")
    monkeypatch.setitem(sys.modules, "kubernetes.aio", None)

    with pytest.raises(NotConfigured, match="the Python package kubernetes, which `make setup` installs"):
        await find_credentials(path)
