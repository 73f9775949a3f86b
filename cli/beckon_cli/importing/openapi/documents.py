"""The documents of a description: read, and their references followed."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

import httpx
from referencing import Registry, Resource
from referencing._core import Resolver
from referencing.exceptions import Unresolvable

from beckon_cli.importing.candidates import NoSource
from beckon_contract.yamltext import NotReadable, read_document

MAX_BYTES = 32 * 1024 * 1024  # the largest public descriptions have about half of it
MAX_DOCUMENTS = 500
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
    found = bytearray()
    for chunk in response.iter_bytes():
        found += chunk
        if len(found) > MAX_BYTES:
            raise BadDescription(f"{url[:200]} has more than {MAX_BYTES} bytes")
    return bytes(found)


def _origin_of(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


_MAX_CHAIN = 50


@dataclass(frozen=True, slots=True)
class Node:
    """A value, and the resolver of its document."""

    value: Any
    resolver: Resolver[Any]
    ref: str = ""

    def get(self, key: str) -> "Node":
        """Return a member with its reference followed.

        The value is `None` if the member is absent, or this is no object.
        """
        value = self.value.get(key) if isinstance(self.value, Mapping) else None
        return follow_references(Node(value, self.resolver))

    def get_raw(self, key: str) -> "Node":
        """Return a member without following its reference."""
        value = self.value.get(key) if isinstance(self.value, Mapping) else None
        return Node(value, self.resolver)

    def get_text(self, key: str) -> str:
        """Return a text member, "" for any other."""
        value = self.value.get(key) if isinstance(self.value, Mapping) else None
        return value if isinstance(value, str) else ""

    def get_flag(self, key: str) -> bool:
        """Return True if a member is `true`."""
        return isinstance(self.value, Mapping) and self.value.get(key) is True

    def entries(self) -> Iterator[tuple[str, "Node"]]:
        """Yield the members of an object with their references followed, extensions left out."""
        for key in self.value if isinstance(self.value, Mapping) else ():
            if not key.startswith("x-"):
                yield key, self.get(key)

    def items(self) -> Iterator["Node"]:
        """Yield the items of a list with their references followed."""
        for value in self.value if isinstance(self.value, list) else ():
            yield follow_references(Node(value, self.resolver))


def follow_references(node: Node) -> Node:
    """Return the target of a node's reference, and of further ones.

    A node without a reference is returned as it is. Raises `BadDescription`, also for a cycle.
    """
    for _ in range(_MAX_CHAIN):
        if not isinstance(node.value, Mapping) or "$ref" not in node.value:
            return node
        node = follow_once(node)
    raise BadDescription(f"the reference {node.value['$ref']!r} leads round in circles")


def follow_once(node: Node) -> Node:
    """Return the target of one reference; raise `BadDescription`."""
    ref = node.value["$ref"]
    if not isinstance(ref, str):
        raise BadDescription(f"a $ref is a text, not {str(ref)[:60]}")
    try:
        found = node.resolver.lookup(ref)
    except Unresolvable as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, BadDescription):
            cause = cause.__cause__
        raise BadDescription(str(cause) if cause else f"nothing is at the reference {ref[:200]!r}") from None
    except (ValueError, TypeError, KeyError, IndexError):
        raise BadDescription(f"nothing is at the reference {ref[:200]!r}") from None
    return Node(found.contents, found.resolver, ref)


def open_root(documents: Documents) -> Node:
    """Return the description itself; raise `BadDescription`."""
    read: dict[str, Resource[Any]] = {}

    def retrieve_document(uri: str) -> Resource[Any]:
        if uri not in read:
            if len(read) >= MAX_DOCUMENTS:
                raise BadDescription(f"refers to more than {MAX_DOCUMENTS} documents")
            read[uri] = Resource.opaque(documents.read(uri))
        return read[uri]

    start = urldefrag(documents.start).url
    first = retrieve_document(start)
    registry: Registry[Any] = Registry(retrieve=retrieve_document).with_resource(start, first)  # type: ignore[call-arg]  # attrs alias, unseen by mypy
    return Node(first.contents, registry.resolver(base_uri=start))
