"""An API server without objects: it answers the start of a service in a cluster, and no more.

Lists are empty, watches say nothing, and what is written comes back as it was sent.
"""

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import yaml

_NO_APIS: dict[str, object] = {"groups": [], "versions": [], "resources": []}  # for who looks for all APIs


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = parse_qs(url.query)
        if "watch" in query:
            self._hold(float(query.get("timeoutSeconds", ["60"])[0]))
        elif url.path.rsplit("/", maxsplit=2)[-2] in ("leases", "secrets"):
            self._answer(404, {"kind": "Status", "code": 404, "reason": "NotFound"})
        else:
            self._answer(200, {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": [], **_NO_APIS})

    def do_POST(self) -> None:
        self._echo(201)

    def do_PUT(self) -> None:
        self._echo(200)

    def do_PATCH(self) -> None:
        self._echo(200)

    def handle(self) -> None:
        """Serve a connection until the client goes."""
        with contextlib.suppress(ConnectionError):
            super().handle()

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def _echo(self, status: int) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
        sent.setdefault("metadata", {})["resourceVersion"] = "2"
        self._answer(status, sent)

    def _answer(self, status: int, document: object) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _hold(self, seconds: float) -> None:
        """Begin a stream, and say nothing until the client has gone."""
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        self.connection.settimeout(seconds)
        with contextlib.suppress(OSError):
            self.connection.recv(1)
        self.close_connection = True


@contextlib.contextmanager
def api_server(folder: Path) -> Iterator[Path]:
    """Serve on a free port; yield a kubeconfig for it in a folder."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = folder / "kubeconfig"
    url = f"http://127.0.0.1:{server.server_port}"
    config.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "bench",
                "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
                "clusters": [{"name": "bench", "cluster": {"server": url}}],
                "users": [{"name": "bench", "user": {}}],
            }
        )
    )
    try:
        yield config
    finally:
        server.shutdown()
        server.server_close()
