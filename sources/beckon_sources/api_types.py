"""The access to an API server, its objects, collections, changes and errors."""

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

Document = Mapping[str, Any]
Name = tuple[str, str]
"""The namespace and the name of an object."""
Query = Sequence[tuple[str, str | int]]

PAGE_SIZE = 250  # objects of one page of a list
_GONE = 410
_MAX_MESSAGE = 300  # characters of an error message


class ApiError(Exception):
    """A request to the API server without success."""


class Unreachable(ApiError):
    """The API server gives no answer."""


class Refused(ApiError):
    """The API server answered with an error; the message is its own."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{message} ({status})")
        self.status = status

    @property
    def gone(self) -> bool:
        """True if the requested version is too old for the server."""
        return self.status == _GONE

    @property
    def passing(self) -> bool:
        """True if the error is temporary: too many requests, or server trouble."""
        return self.status == 429 or self.status >= 500


class NotConfigured(Exception):
    """There is no usable kubeconfig, and this is no pod."""


@dataclass(frozen=True, slots=True)
class ApiAccess:
    """The address and the credentials for a request.

    `authorization` is a header; "" where a client certificate in `tls` takes its place. Without `proxy` the
    variables of the environment count. `server_name` is the name in the certificate, if not the host.
    """

    server: str
    authorization: str = field(default="", repr=False)
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    proxy: str | None = None


class Credentials(Protocol):
    """The current access to an API server."""

    async def access(self) -> ApiAccess:
        """Return the access for the next request.

        Raises `OSError` or `NotConfigured` if it cannot be read any more.
        """
        ...

    async def renew(self, refused: ApiAccess) -> ApiAccess | None:
        """Return another access than the one that was refused, or `None`. Raises the errors of `access`."""
        ...


def is_temporary(error: BaseException) -> bool:
    """Return True if the same request may succeed a moment later."""
    return isinstance(error, Unreachable) or (isinstance(error, Refused) and error.passing)


def object_path(api_version: str, plural: str, namespace: str | None = None, name: str = "") -> str:
    """Return the path of an object or a collection.

    Without a name it is the collection; without a namespace, the collection of all namespaces.
    """
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    parts = (root, f"namespaces/{namespace}" if namespace else "", plural, name)
    return "/".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Collection:
    """The objects of one kind, such as `tools` of `beckon.dev/v1alpha1`.

    In one namespace or, with `None`, in all of them.
    """

    api_version: str
    plural: str
    namespace: str | None = None

    @property
    def path(self) -> str:
        """The path of the collection at the API server."""
        return object_path(self.api_version, self.plural, self.namespace)

    def __str__(self) -> str:
        """Return it as a message names it."""
        return f"{self.plural} in {f'namespace {self.namespace}' if self.namespace else 'all namespaces'}"


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list; `rest` is the continue token, empty at the end.

    Its objects need not state their kind and version: all objects of a list have the same.
    """

    items: Sequence[Document]
    version: str
    rest: str


@dataclass(frozen=True, slots=True)
class Change:
    """One event of a watch: ADDED, MODIFIED, DELETED or BOOKMARK."""

    type: str
    document: Document

    @property
    def version(self) -> str:
        """The version to go on from."""
        return version_of(self.document)


def name_of(document: Document) -> Name:
    """Return the namespace and the name of an object."""
    metadata: Document = document.get("metadata") or {}
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def version_of(document: Document) -> str:
    """Return the resource version of an object or a list."""
    return str((document.get("metadata") or {}).get("resourceVersion") or "")


def page_query(rest: str, limit: int) -> Query:
    """Return the query for a part of a list."""
    return (("limit", limit), *((("continue", rest),) if rest else ()))


def watch_query(version: str, seconds: int) -> Query:
    """Return the query for the changes after a version."""
    return (
        ("watch", "true"),
        ("resourceVersion", version),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", seconds),
    )


def read_page(document: Document) -> Page:
    """Read a part of a list."""
    metadata = document.get("metadata") or {}
    return Page(document.get("items") or (), version_of(document), str(metadata.get("continue") or ""))


def read_change(line: bytes) -> Change:
    """Read a line of a watch; raise the error in it."""
    event = read_document(line)
    document = event.get("object") or {}
    if event.get("type") == "ERROR":
        raise Refused(int(document.get("code") or 500), str(document.get("message") or "the watch ended"))
    return Change(str(event.get("type")), document)


def refusal(status: int, content: bytes) -> Refused:
    """Return the error in an answer. The API server explains itself in a `Status`; a proxy may not."""
    try:
        message = str(read_document(content).get("message") or "")[:_MAX_MESSAGE]
    except Unreachable:
        message = ""
    return Refused(status, message or "the API server answered with an error")


def read_document(content: bytes) -> dict[str, Any]:
    """Read an object of JSON; raise `Unreachable` for anything else."""
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError:
        document = None
    if not isinstance(document, dict):
        raise Unreachable("the API server sent what is no JSON object")
    return document


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message."""
    return str(error).partition("\n")[0] or type(error).__name__
