"""A real HTTP server for an API's description: it checks each request against it and answers an example."""

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.cli.importing.oracle import Oracle, received


@dataclass
class DescribedApi:
    """The server: its URL with the path of the description's first server, and its requests."""

    url: str
    requests: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


@contextmanager
def serving(path: Path) -> Iterator[DescribedApi]:
    """Serve the description in a file until the block ends."""
    description = json.loads(path.read_bytes())
    real = urlsplit(description["servers"][0]["url"], scheme="https")
    api = DescribedApi("")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(path, description, f"https://{real.netloc}", api))
    api.url = f"http://127.0.0.1:{server.server_port}{real.path}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(
    path: Path, description: Mapping[str, Any], host: str, api: DescribedApi
) -> type[BaseHTTPRequestHandler]:
    oracle = Oracle(path)
    start = urlsplit(description["servers"][0]["url"]).path

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            request = f"{self.command} {self.path}"
            try:
                oracle.judge(received(self.command, host + self.path, self.headers.items(), body))
            except Exception as error:
                api.refused.append(f"{request}: {error!r}")
                self._send(400, {"message": f"{type(error).__name__}: {error}"})
                return
            api.requests.append(request)
            template = urlsplit(self.path).path.removeprefix(start)
            self._send(200, example(description, self.command.lower(), template))

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815 the names of http.server

        def _send(self, status: int, document: object) -> None:
            content = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler


def example(description: Mapping[str, Any], method: str, path: str) -> Any:
    """Return an example of a good answer, as the description has it or as its schema asks for one."""
    for template, item in description["paths"].items():
        pattern = re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(template))
        if method in item and re.fullmatch(pattern, path):
            responses = item[method]["responses"]
            good: dict[str, Any] = next(
                (responses[status] for status in responses if status.startswith("2")), {}
            )
            content: dict[str, Any] = next(iter(good.get("content", {}).values()), {})
            return content.get("example", _sample(description, content.get("schema", {}), 4))
    return None


def _sample(description: Mapping[str, Any], schema: Mapping[str, Any], depth: int) -> Any:
    if "$ref" in schema:
        return _sample(description, _target(description, schema["$ref"]), depth)
    if "example" in schema or "enum" in schema:
        return schema.get("example", schema.get("enum", [None])[0])
    if "properties" in schema and depth:
        return {name: _sample(description, inner, depth - 1) for name, inner in schema["properties"].items()}
    if schema.get("type") == "array" and depth:
        return [_sample(description, schema.get("items", {}), depth - 1)]
    return {"integer": 1, "number": 1.5, "boolean": True, "string": "text"}.get(schema.get("type", ""))


def _target(description: Mapping[str, Any], ref: str) -> Mapping[str, Any]:
    found: Any = description
    for part in unquote(ref).removeprefix("#/").split("/"):
        found = found[part.replace("~1", "/").replace("~0", "~")]
    return found  # type: ignore[no-any-return]  # a schema, whatever the description says
