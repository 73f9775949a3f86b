"""The credentials of a Pod, replaced while they are in use."""

from pathlib import Path

import pytest
import trustme

from beckon_sources import api_client
from beckon_sources.api_client import ApiClient, PodCredentials, find_credentials
from beckon_sources.api_types import NotConfigured, Refused, Unreachable
from tests.sources.secure_server import PATH, SecureServer, secure_server


class Pod:
    """The files of a service account, as the kubelet mounts them."""

    def __init__(self, folder: Path, server: SecureServer, token: str) -> None:
        self.folder = folder
        self.environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(server.port)}
        self.write(token, server.authority)

    def write(self, token: str, authority: trustme.CA) -> None:
        (self.folder / "token").write_text(f"{token}\n")
        authority.cert_pem.write_to_path(str(self.folder / "ca.crt"))

    def client(self) -> ApiClient:
        return ApiClient(PodCredentials(self.folder, self.environ), "beckon-test")


async def test_a_pod_verifies_the_server_by_the_clusters_authority_and_sends_its_token(
    tmp_path: Path,
) -> None:
    async with secure_server("Bearer first") as server, Pod(tmp_path, server, "first").client() as client:
        assert await client.get(PATH) == {"kind": "Secret"}


async def test_another_server_gets_no_token(tmp_path: Path) -> None:
    async with secure_server("Bearer first") as server:
        pod = Pod(tmp_path, server, "first")
        pod.write("first", trustme.CA())
        async with pod.client() as client:
            with pytest.raises(Unreachable, match=r"(?i)certificate"):
                await client.get(PATH)

    assert server.refused == 0


async def test_a_token_that_was_replaced_is_read_again_after_a_refusal(tmp_path: Path) -> None:
    async with secure_server("Bearer first") as server:
        pod = Pod(tmp_path, server, "first")
        async with pod.client() as client:
            await client.get(PATH)
            pod.write("second", server.authority)
            server.authorizations = {"Bearer second"}

            assert await client.get(PATH) == {"kind": "Secret"}

    assert server.refused == 1


async def test_a_token_is_read_again_once_a_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with secure_server("Bearer first") as server:
        pod = Pod(tmp_path, server, "first")
        async with pod.client() as client:
            await client.get(PATH)
            pod.write("second", server.authority)
            server.authorizations = {"Bearer second"}
            monkeypatch.setattr(api_client, "_TOKEN_SECONDS", 0.0)

            await client.get(PATH)

    assert server.refused == 0


async def test_a_refused_token_is_sent_once_and_the_refusal_is_reported(tmp_path: Path) -> None:
    async with secure_server("Bearer other") as server, Pod(tmp_path, server, "first").client() as client:
        with pytest.raises(Refused, match=r"Unauthorized \(401\)"):
            await client.get(PATH)

    assert server.refused == 1


async def test_the_authority_of_a_cluster_may_be_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_client, "_TOKEN_SECONDS", 0.0)
    async with secure_server("Bearer first") as before:
        pod = Pod(tmp_path, before, "first")
        client = pod.client()
        await client.get(PATH)
    async with secure_server("Bearer first", port=before.port) as after, client:
        with pytest.raises(Unreachable, match=r"(?i)certificate"):
            await client.get(PATH)
        pod.write("first", after.authority)

        assert await client.get(PATH) == {"kind": "Secret"}


async def test_files_that_are_away_for_a_moment_end_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_client, "_TOKEN_SECONDS", 0.0)
    async with secure_server("Bearer first") as server:
        pod = Pod(tmp_path, server, "first")
        async with pod.client() as client:
            (tmp_path / "token").write_text("")
            with pytest.raises(Unreachable, match="token is empty"):
                await client.get(PATH)
            (tmp_path / "token").unlink()
            with pytest.raises(Unreachable, match="token"):
                await client.get(PATH)
            pod.write("first", server.authority)

            assert await client.get(PATH) == {"kind": "Secret"}


async def test_a_pod_of_ipv6_has_an_address_in_brackets(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}

    access = await PodCredentials(tmp_path, environ).access()

    assert access.server == "https://[fd00::1]:443"
    assert "Bearer" not in repr(access)


async def test_outside_a_pod_and_without_a_kubeconfig_the_message_has_the_cure() -> None:
    with pytest.raises(NotConfigured, match=r"KUBERNETES_SERVICE_HOST .+; run in a Pod, or set KUBECONFIG"):
        await find_credentials("")
