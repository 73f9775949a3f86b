"""What an import found: tools with their credentials, and skipped items."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, Generic, Protocol, TypeVar

from beckon_contract.names import Identity, assign_names


@dataclass(frozen=True, slots=True)
class Source:
    """The source of manifests.

    The annotation `beckon.dev/imported-from` ends with its `name`. `option` is the command-line option that
    gives the manifests other names.
    """

    name: str
    option: str

    def mark(self, what: str) -> str:
        """Return the annotation's value for one operation."""
        return f"{what} of {self.name}"

    def unmark(self, value: str) -> str | None:
        """Return the operation in an annotation's value. Returns `None` for a value of another source."""
        what = value.removesuffix(f" of {self.name}")
        return what if what != value else None


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a credential, as sent. `kind` is bearer, basic, header, query or cookie."""

    kind: str
    name: str = ""
    hint: str = ""

    def __str__(self) -> str:
        """Return it in words."""
        if self.kind == "bearer":
            return "a bearer token in Authorization"
        if self.kind == "basic":
            return "a user and a password in Authorization"
        where = {"query": "query parameter", "cookie": "cookie"}.get(self.kind, self.kind)
        return f"the {where} {self.name}"


@dataclass(frozen=True, slots=True)
class Credential:
    """The credential of an operation; without a name, none is needed.

    `problem` says why no rule can send it.
    """

    name: str = ""
    parts: tuple[Part, ...] = ()
    problem: str = ""

    def sends(self, place: str, name: str) -> bool:
        """Return True if it sends this parameter."""
        folded = name.lower() if place == "header" else name
        return any(
            part.kind == place and (part.name.lower() if place == "header" else part.name) == folded
            for part in self.parts
        )


class NoSource(ValueError):
    """The source cannot be imported as requested.

    It cannot be read, or has nothing that a word of the selection matches. The message is one line.
    """


class Tool(Protocol):
    """A tool found in the source, to be written as an EventType."""

    @property
    def what(self) -> str:
        """Its name at the source: `GET /pets`, or an MCP tool's name."""
        ...

    @property
    def name(self) -> str:
        """Its name for the model."""
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
        """Its description for the model."""
        ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The JSON Schema of its arguments."""
        ...

    @property
    def annotations(self) -> Mapping[str, str]:
        """Annotations: the source's hints on its effects, and the adapter's rule."""
        ...

    @property
    def url(self) -> str:
        """The URL of its calls, to be allowed by the adapter's owner. It is "" if nothing must be allowed."""
        ...

    @property
    def credential(self) -> Credential:
        """The adapter's credential for its calls."""
        ...

    @property
    def tags(self) -> tuple[str, ...]:
        """The source's tags for it."""
        ...

    @property
    def details(self) -> Mapping[str, str]:
        """Its other names at the source, for programs."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on omitted or changed parts, for readers of the manifests."""
        ...


class NamedByObjects:
    """The names of a tool that follow from `object_name`, the metadata.name of its objects."""

    __slots__ = ()

    object_name: str

    @property
    def name(self) -> str:
        """Its name for the model."""
        identity = Identity("", self.object_name)
        return assign_names({identity: self.object_name})[identity]

    @property
    def type(self) -> str:
        """The type of its calls, equal to its EventType's name."""
        return self.object_name

    @property
    def details(self) -> Mapping[str, str]:
        """Nothing: the source has one name for it."""
        return {}


@dataclass(frozen=True, slots=True)
class Skipped:
    """An item of the source without a tool, and the reason. `name` is the name that its tool would have."""

    what: str
    name: str
    reason: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Service:
    """A Service for the calls, in place of the adapter.

    `text` is its manifest; it is empty for a Service that has a file of its own.
    """

    name: str
    api_version: str = "serving.knative.dev/v1"
    text: str = ""


Tool_co = TypeVar("Tool_co", bound=Tool, covariant=True)


@dataclass(frozen=True)
class ImportSource(Generic[Tool_co]):
    """A source and the results for its chosen items.

    `importer` is the word after `beckon import`, `noun` its word for one item. `name` is the name of a file
    with everything. `origin` is what its manifests name. `present` is everything in the source, chosen or
    not; `servers` are the URLs at which it can be reached.
    """

    importer: str
    noun: str
    title: str
    name: str
    origin: Source
    present: frozenset[str]
    results: tuple[Tool_co | Skipped, ...]
    servers: tuple[str, ...] = ()
    service: Service | None = None

    @property
    def tools(self) -> list[Tool_co]:
        """The tools among the results."""
        return [each for each in self.results if not isinstance(each, Skipped)]

    @property
    def skipped(self) -> list[Skipped]:
        """The skipped items among the results."""
        return [each for each in self.results if isinstance(each, Skipped)]


Thing = TypeVar("Thing")


def choose_things(
    things: Sequence[Thing],
    words: Sequence[str],
    means: Callable[[str, Thing], bool],
    *,
    noun: str,
    known: Iterable[str],
) -> list[bool]:
    """Return one boolean for each item: True if any word matches.

    Without words all are True. Raises `NoSource` for a word that matches nothing, with the most similar of
    the words that are `known`.
    """
    if not words:
        return [True] * len(things)
    chosen = [False] * len(things)
    for word in words:
        hits = [means(word, thing) for thing in things]
        if not any(hits):
            raise NoSource(f"--select {word!r} means no {noun}{_suggest_word(word, known)}")
        chosen = [before or hit for before, hit in zip(chosen, hits, strict=True)]
    return chosen


NamedTool = TypeVar("NamedTool", bound=Tool)


def choose_by_name(
    results: Sequence[NamedTool | Skipped], words: Sequence[str], noun: str
) -> tuple[NamedTool | Skipped, ...]:
    """Return the results whose name at the source or for models matches any word; without words all.

    Raises `NoSource` for a word that matches nothing.
    """
    chosen = choose_things(
        results,
        words,
        lambda word, each: matches_pattern(each.what, word) or matches_pattern(each.name, word),
        noun=noun,
        known=[name for each in results for name in (each.what, each.name)],
    )
    return tuple(each for each, is_meant in zip(results, chosen, strict=True) if is_meant)


_NO_NAME = re.compile(r"[^a-z0-9]+")
_LONGEST_SOURCE = 40  # characters of a source's name, which is a part of other names
_LONGEST = 200  # characters of a name; Kubernetes takes 253


def object_name(text: str) -> str:
    """Return a text as a part of a Kubernetes name."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", text)
    return _NO_NAME.sub("-", spaced.lower()).strip("-") or "tool"


def source_name(text: str) -> str:
    """Return the name of a server or an agent, with which those of its tools begin."""
    return object_name(text)[:_LONGEST_SOURCE].rstrip("-")


def join_names(source: str, tool: str) -> str:
    """Return the metadata.name of a source's tool."""
    return f"{source}.{tool}"[:_LONGEST].rstrip("-.")


def bearer_credential(name: str) -> Credential:
    """Return the adapter's credential of a name, "" for none, as it is sent to a server or an agent."""
    return Credential(name, (Part("bearer"),) if name else ())


def matches_pattern(text: str, pattern: str) -> bool:
    """Return True if a text matches a pattern, ignoring case. `*` in the pattern means any text."""
    return fnmatchcase(text.lower(), pattern.lower().replace("[", "[[]"))


def _suggest_word(word: str, known: Iterable[str]) -> str:
    near = get_close_matches(word, dict.fromkeys(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else "; --list shows what there is"
