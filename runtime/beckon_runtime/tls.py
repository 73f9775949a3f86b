"""A TLS port, with handshakes within the limits of the port.

With asyncio's own TLS servers, a connection reaches the application's protocol only after its handshake:
until then no limit of the port would hold for it.
"""

import asyncio
import functools
import logging
import socket

import uvicorn

from beckon_runtime.asgi import LimitedConfig, LimitedProtocol
from beckon_runtime.certificates import CertificateFolder
from beckon_runtime.connections import Connections
from beckon_runtime.process import accept_connections

_PAUSE = 1.0

logger = logging.getLogger(__name__)


class TlsPort:
    """A listening socket, and the certificate of its connections."""

    def __init__(self, listener: socket.socket, certificate: CertificateFolder) -> None:
        self._listener = listener
        self._certificate = certificate
        self._handshakes: set[asyncio.Task[None]] = set()

    async def serve(self, server: uvicorn.Server, config: LimitedConfig) -> None:
        """Serve the application of a started server at this port, too, until cancelled.

        The connections of both ports have their limits in common, and end together.
        """
        try:
            while True:
                try:
                    accepted = await accept_connections(self._listener)
                except OSError as error:  # such as no more open files
                    logger.warning("no connection is taken at the TLS port: %s; trying again", error.strerror)
                    await asyncio.sleep(_PAUSE)
                    continue
                for connected, client in accepted:
                    task = asyncio.create_task(self._accept_tls(server, config, connected, client))
                    self._handshakes.add(task)
                    task.add_done_callback(self._handshakes.discard)
        finally:
            self._listener.close()
            for task in self._handshakes:
                task.cancel()

    async def _accept_tls(
        self, server: uvicorn.Server, config: LimitedConfig, connected: socket.socket, client: str
    ) -> None:
        """Pass a connection to the application's protocol, after its handshake."""
        handshake = _Handshake(config.connections)
        protocol = functools.partial(
            _SecureProtocol,
            handshake,
            config=config,
            server_state=server.server_state,
            app_state=server.lifespan.state,
        )
        if not config.connections.add(handshake, client):
            connected.close()
            return
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                protocol,
                connected,
                ssl=self._certificate.context,
                ssl_handshake_timeout=config.connections.limits.receive_seconds,
            )
        except OSError as error:  # of the client, and time-outs
            logger.debug("a TLS handshake failed: %s", error)
        finally:
            handshake.end()


class _Handshake:
    """A connection before the end of its handshake: to the limits of its port, one without a request."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._task = asyncio.current_task()

    def end(self) -> None:
        """Give the place of the connection to others."""
        self._connections.remove(self)

    def close_idle(self) -> None:
        """Close: it has no request yet."""
        self.abort()

    def close_slow(self) -> None:
        """Close: it has no request yet."""
        self.abort()

    def abort(self) -> None:
        """Close at once."""
        if self._task is not None:
            self._task.cancel()


class _SecureProtocol(LimitedProtocol):
    """The protocol of the application, for a connection whose handshake has its place until it is over."""

    def __init__(self, handshake: _Handshake, **options: object) -> None:
        super().__init__(**options)
        self._handshake = handshake

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Take the place of the handshake."""
        self._handshake.end()
        super().connection_made(transport)
