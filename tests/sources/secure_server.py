"""An API server over TLS, for the credentials of its clients."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trustme
from aiohttp import web

PATH = "/api/v1/namespaces/default/secrets/any"


@dataclass
class SecureServer:
    """An API server over TLS that takes certain headers or a client certificate."""

    authority: trustme.CA
    authorizations: set[str] = field(default_factory=set)
    clients: trustme.CA | None = None
    """The authority of client certificates that count as credentials."""
    refused: int = 0
    port: int = 0

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    async def answer(self, request: web.Request) -> web.Response:
        transport = request.transport
        assert transport is not None
        certified = bool(transport.get_extra_info("peercert"))
        if certified or request.headers.get("authorization") in self.authorizations:
            return web.json_response({"kind": "Secret"})
        self.refused += 1
        return web.json_response({"message": "Unauthorized"}, status=401)

    def tls(self, host: str) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.authority.issue_cert(host).configure_cert(context)
        if self.clients is not None:
            context.verify_mode = ssl.CERT_OPTIONAL
            self.clients.configure_trust(context)
        return context


@asynccontextmanager
async def secure_server(
    *authorizations: str, host: str = "127.0.0.1", clients: trustme.CA | None = None, port: int = 0
) -> AsyncIterator[SecureServer]:
    server = SecureServer(trustme.CA(), set(authorizations), clients)
    app = web.Application()
    app.router.add_get(PATH, server.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=server.tls(host))
    await site.start()
    server.port = runner.addresses[0][1]
    try:
        yield server
    finally:
        await runner.cleanup()
