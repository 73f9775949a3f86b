"""What an import found: each thing becomes a tool, or there is a line that says why not."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from beckon_cli.importing.credential import Credential
from beckon_cli.importing.files import Source


class NoSource(ValueError):
    """What is to be imported cannot be read, or not as it was asked for; the message is one line."""


class Tool(Protocol):
    """A thing of the source that becomes an EventType."""

    @property
    def what(self) -> str:
        """What it is at its source: `GET /pets`, or the name of an MCP server's tool."""
        ...

    @property
    def name(self) -> str:
        """What a model will call it."""
        ...

    @property
    def object_name(self) -> str:
        """The metadata.name of its objects."""
        ...

    @property
    def type(self) -> str:
        """The type of its calls."""
        ...

    @property
    def description(self) -> str:
        """What a model reads of it."""
        ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The JSON Schema of its arguments."""
        ...

    @property
    def annotations(self) -> Mapping[str, str]:
        """What the source says of its effects, and the adapter's rule."""
        ...

    @property
    def url(self) -> str:
        """What is called, where the adapter's owner must allow it; "" where nothing must be allowed."""
        ...

    @property
    def credential(self) -> Credential:
        """What lets the adapter in."""
        ...

    @property
    def tags(self) -> tuple[str, ...]:
        """The words under which the source files it."""
        ...

    @property
    def details(self) -> Mapping[str, str]:
        """What else the source calls it, for programs."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out of it or changed, for those who read the manifests."""
        ...


@dataclass(frozen=True, slots=True)
class Skipped:
    """A thing of the source that becomes nothing, under the name that it would have, and why."""

    what: str
    name: str
    reason: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Service:
    """A Service that takes the calls in the adapter's stead; its `text` may stand in a file of its own."""

    name: str
    api_version: str = "serving.knative.dev/v1"
    text: str = ""


Tool_co = TypeVar("Tool_co", bound=Tool, covariant=True)


@dataclass(frozen=True)
class Found(Generic[Tool_co]):
    """A source and what the chosen things of it become.

    `importer` is the word after `beckon import`, `noun` what it calls one thing. `name` is that of a file
    with everything, `present` what the source has, chosen or not, `servers` where it can be reached.
    """

    importer: str
    noun: str
    title: str
    name: str
    source: Source
    present: frozenset[str]
    results: tuple[Tool_co | Skipped, ...]
    servers: tuple[str, ...] = ()
    service: Service | None = None

    @property
    def tools(self) -> list[Tool_co]:
        """What becomes a tool."""
        return [each for each in self.results if not isinstance(each, Skipped)]

    @property
    def skipped(self) -> list[Skipped]:
        """What becomes none."""
        return [each for each in self.results if isinstance(each, Skipped)]
