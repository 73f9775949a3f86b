"""How a model's server is reached: its certificate, the credentials in its address, the proxy on the way."""

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme
from aiohttp import web

from beckon_agent.model.errors import ModelUnavailable
from beckon_agent.model.transport import Patience, Transport


@asynccontextmanager
async def listed(context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serve a list of models that names the caller first, and then the requested path."""

    async def models(request: web.BaseRequest) -> web.Response:
        said = (request.headers.get("authorization", "anonymous"), request.raw_path)
        return web.json_response({"data": [{"id": name} for name in said]})

    runner = web.ServerRunner(web.Server(models))
    await runner.setup()
    bound = socket.create_server(("127.0.0.1", 0))
    await web.SockSite(runner, bound, ssl_context=context).start()
    try:
        yield f"127.0.0.1:{bound.getsockname()[1]}"
    finally:
        await runner.cleanup()


async def models(base_url: str, key: str = "") -> list[str]:
    transport = Transport(base_url, key, Patience())
    try:
        return await transport.list_models()
    finally:
        await transport.aclose()


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def served_context(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


async def test_a_certificate_that_no_one_vouches_for_is_refused(served_context: ssl.SSLContext) -> None:
    async with listed(served_context) as address:
        with pytest.raises(ModelUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
            await models(f"https://{address}/v1")


async def test_a_certificate_of_an_authority_that_this_machine_trusts_is_taken(
    authority: trustme.CA, served_context: ssl.SSLContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted = tmp_path / "trusted.pem"
    authority.cert_pem.write_to_path(str(trusted))
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))

    async with listed(served_context) as address:
        assert await models(f"https://{address}/v1", "a-key") == ["Bearer a-key", "/v1/models"]


async def test_credentials_in_the_address_stand_in_place_of_the_key() -> None:
    async with listed() as address:
        who, _ = await models(f"http://ada:secret@{address}/v1", "a-key")

    assert who == "Basic YWRhOnNlY3JldA=="


async def test_the_proxy_of_the_environment_is_called_unless_the_server_is_excepted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with listed() as proxy, listed() as address:
        monkeypatch.setenv("http_proxy", f"http://{proxy}")
        monkeypatch.setenv("no_proxy", "")
        assert (await models(f"http://{address}/v1"))[1] == f"http://{address}/v1/models"

        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert (await models(f"http://{address}/v1"))[1] == "/v1/models"
