"""The second opinion on a request: `openapi-core`, which knows nothing of how it came about."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import orjson
from openapi_core import Config, OpenAPI
from openapi_core.datatypes import RequestParameters
from werkzeug.datastructures import Headers, ImmutableMultiDict

from beckon_cli.importing.candidates import Part

# The description itself is not judged: real ones have mistakes that do not matter here.
_CONFIG = Config(spec_validator_cls=None)  # type: ignore[arg-type]  # the annotation forgets None
_SECRET = "secret-of-the-owner"


@dataclass
class Received:
    """A request as the oracle wants it."""

    method: str
    host_url: str
    path: str
    parameters: RequestParameters
    content_type: str = ""
    body: bytes | None = None
    full_url_pattern: str = field(default="")


class Oracle:
    """Judges requests by one description."""

    def __init__(self, path: Path) -> None:
        description = orjson.loads(path.read_bytes())
        for server in description.get("servers", []):
            if server["url"].startswith("//"):  # relative to the description's own address, a file here
                server["url"] = f"https:{server['url']}"
        self._openapi = OpenAPI.from_dict(description, config=_CONFIG)

    def judge(self, request: Received) -> None:
        """Raise openapi-core's error for a request that the description does not allow."""
        self._openapi.validate_request(request)


def received(
    method: str, url: str, headers: Iterable[tuple[str, str]], body: bytes, parts: Iterable[Part] = ()
) -> Received:
    """Return a request as it arrives at the API, with what the credential adds to it."""
    split = urlsplit(url)
    query = parse_qsl(split.query, keep_blank_values=True)
    found = Headers(list(headers))
    cookies: dict[str, str] = {}
    for part in parts:
        _send(part, query, found, cookies)
    given = RequestParameters(
        query=ImmutableMultiDict(query), header=found, cookie=ImmutableMultiDict(cookies)
    )
    kind = found.get("content-type", "")
    return Received(method.lower(), f"{split.scheme}://{split.netloc}", split.path, given, kind, body or None)


def _send(part: Part, query: list[tuple[str, str]], headers: Headers, cookies: dict[str, str]) -> None:
    match part.kind:
        case "query":
            query.append((part.name, _SECRET))
        case "header":
            headers.add(part.name, _SECRET)
        case "cookie":
            cookies[part.name] = _SECRET
        case "bearer":
            headers.add("Authorization", f"Bearer {_SECRET}")
        case "basic":
            headers.add("Authorization", "Basic dTpw")
