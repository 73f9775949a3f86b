"""Documents that an import reads, from files and URLs: descriptions of APIs, and cards of agents."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

import httpx

from beckon_cli.importing.candidates import NoSource
from beckon_contract.yamltext import NotReadable, read_document

MAX_BYTES = 32 * 1024 * 1024  # the largest public descriptions have about half of it
MAX_REDIRECTS = 5
_SECONDS = 30.0

Report = Callable[[str], None]


class BadDescription(NoSource):
    """A description cannot be read or understood. The message says where and why, in one line."""


class FileDocuments:
    """A description in a file, and the documents it refers to. These are in its own folder and below."""

    def __init__(self, path: Path, root: Path | None = None) -> None:
        """Take the path of the description.

        The documents it refers to must be below `root`, by default its own folder.
        """
        self._path = path.absolute()
        self._root = (root or self._path.parent).resolve()
        self.start = self._path.as_uri()
        self.name = path.name

    def read(self, uri: str) -> Any:
        """Return the document at a URI as plain data; raise `BadDescription`."""
        parts = urlsplit(urldefrag(uri).url)
        if parts.scheme != "file":
            raise BadDescription(f"refers to {uri[:200]}; a file may refer to files only, so download it")
        path = Path(unquote(parts.path))
        resolved = path.resolve()
        if path != self._path and not resolved.is_relative_to(self._root):
            raise BadDescription(f"refers to {path}, outside of {self._root}; allow it with --root FOLDER")
        try:
            size = resolved.stat().st_size
            if size > MAX_BYTES:
                raise BadDescription(f"{path} has {size} bytes, more than {MAX_BYTES}")
            return parse_document(resolved.read_bytes(), str(path))
        except OSError as error:
            raise BadDescription(f"cannot read {path}: {error.strerror}") from None


class UrlDocuments:
    """A description at a URL, and the documents it refers to.

    Redirects are followed. The other documents must be at the same scheme, host and port as the
    description.
    """

    def __init__(self, url: str, client: httpx.Client, report: Report) -> None:
        """Fetch the description, and report each redirect. Raises `BadDescription`."""
        self._client = client
        self._report = report
        self._allowed: tuple[str, str] | None = None
        self.name = url
        self.start, self._first = self._fetch_document(url)
        self._allowed = _origin_of(self.start)

    def read(self, uri: str) -> Any:
        """Return the document at a URI as plain data; raise `BadDescription`."""
        url = urldefrag(uri).url
        if url == self.start:
            return self._first
        return self._fetch_document(url)[1]

    def _fetch_document(self, url: str) -> tuple[str, Any]:
        for _ in range(MAX_REDIRECTS + 1):
            if self._allowed is not None and _origin_of(url) != self._allowed:
                raise BadDescription(
                    f"refers to {url[:200]}, on another host; download both, and import the file"
                )
            try:
                with self._client.stream("GET", url, timeout=_SECONDS) as response:
                    if response.next_request is None:
                        return url, parse_document(_read_body(response, url), url)
                    following = str(response.next_request.url)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise BadDescription(
                    f"cannot read {url[:200]}: {str(error) or type(error).__name__}"
                ) from None
            if url.startswith("https:") and not following.startswith("https:"):
                raise BadDescription(f"{url[:200]} redirects to {following[:200]}, which is not encrypted")
            self._report(f"{url[:200]} redirects to {following[:200]}")
            url = following
        raise BadDescription(f"{self.name[:200]} redirects more than {MAX_REDIRECTS} times")


Documents = FileDocuments | UrlDocuments


def parse_document(content: bytes, where: str) -> Any:
    """Return YAML or JSON as plain data, its aliases, size and depth limited; raise `BadDescription`."""
    try:
        return read_document(content.decode("utf-8-sig"), core=True)
    except UnicodeDecodeError:
        raise BadDescription(f"{where} is not UTF-8") from None
    except NotReadable as error:
        raise BadDescription(f"{where}: {error}") from None


def _read_body(response: httpx.Response, url: str) -> bytes:
    if response.status_code != 200:
        raise BadDescription(f"{url[:200]} answers {response.status_code} {response.reason_phrase}")
    body = bytearray()
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) > MAX_BYTES:
            raise BadDescription(f"{url[:200]} has more than {MAX_BYTES} bytes")
    return bytes(body)


def _origin_of(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()
