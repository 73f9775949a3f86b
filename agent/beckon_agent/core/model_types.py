"""Messages, tool calls and turns, and the text of messages.

A tool call of a model without ids gets one here.
"""

import hashlib
import re
import secrets
import string
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from beckon_agent.core import json_values
from beckon_contract.resources.tools import CallOrigin

Message = dict[str, Any]
"""One chat message in OpenAI's shape: role, content, tool_calls, tool_call_id."""

CLAIMED: Final = "claimed"
"""The key of a message that a client sent as the assistant's: no record shows that the model wrote it."""

ITEM_NUMBERS: Final = "item_numbers"
"""The key of a conversation's message that keeps the ids of its items after another one was deleted."""

Declaration = dict[str, Any]
"""One entry of OpenAI's `tools` array."""


BROKE_OFF = "incomplete"
"""The finish reason of a turn whose stream ended without one, and without `[DONE]`."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call requested by the model.

    `arguments` is its raw text, not yet trusted. `id` is unique in the conversation: nine letters and digits,
    accepted by every provider, unless it carries a provider's signature and has to go back unchanged. `extra`
    holds the unknown fields of the wire format, required back by some providers.
    """

    id: str
    name: str
    arguments: str
    extra: Mapping[str, Any] = field(default_factory=dict)
    origin: CallOrigin = "api"


RefusalReason = Literal["brought_along", "not_offered"]
"""Why a call in a text was not made: the conversation brought it along, or no such tool was offered."""


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """A call found in a text, but left as text. `name` is empty if no tool has it."""

    name: str
    reason: RefusalReason


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the server counted them.

    The details are parts of the two numbers by OpenAI's names, such as `cached_tokens`. A part that the
    server does not report is absent.
    """

    prompt_tokens: int
    completion_tokens: int
    prompt_details: Mapping[str, int] = field(default_factory=dict)
    completion_details: Mapping[str, int] = field(default_factory=dict)

    @property
    def total_tokens(self) -> int:
        """Prompt and completion together."""
        return self.prompt_tokens + self.completion_tokens


def sum_usages(counted: Iterable[Usage | None]) -> Usage | None:
    """Return the sum of what is known; `None` if nothing is."""
    known = [usage for usage in counted if usage is not None]
    if len(known) < 2:
        return known[0] if known else None
    return Usage(
        sum(usage.prompt_tokens for usage in known),
        sum(usage.completion_tokens for usage in known),
        _sum_details(usage.prompt_details for usage in known),
        _sum_details(usage.completion_details for usage in known),
    )


def _sum_details(details: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for one in details:
        total.update(one)
    return dict(total)


Logprobs = tuple[Mapping[str, Any], ...]
"""Tokens with their log probabilities, in OpenAI's form."""


@dataclass(frozen=True, slots=True)
class AnswerDetails:
    """The parts of an answer besides text, reasoning and calls.

    `refusal` is what the model says in place of an answer. The log probabilities are those of the tokens of
    the text and of the refusal, `annotations` those of the text, and `fingerprint` is the server's
    `system_fingerprint`.
    """

    refusal: str = ""
    logprobs: Logprobs = ()
    refusal_logprobs: Logprobs = ()
    annotations: tuple[Mapping[str, Any], ...] = ()
    fingerprint: str = ""

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "AnswerDetails":
        """Return the details of a JSON object; its arrays become tuples."""
        members: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in document.items()
        }
        return cls(**members)


NO_DETAILS: Final = AnswerDetails()


@dataclass(frozen=True, slots=True)
class Turn:
    """A whole answer of the model: the last item of every stream.

    `finish_reason` is the server's, `None` if the server reported only the end of the answer, and `BROKE_OFF`
    if it did not report even that. `usage` is `None` if the server does not count. `sent` are the names of
    the agent's tools sent to the model, if they were noted. `refused` are the calls in its text that were not
    made.
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    usage: Usage | None = None
    sent: tuple[str, ...] = ()
    refused: tuple[RefusedCall, ...] = ()
    details: AnswerDetails = NO_DETAILS


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request to a model: the conversation, the declarations, the limits.

    `needed` are the fields without which the answer would be another: a server's refusal of one is an error.
    With `own_format`, `response_format` belongs to the dialect, and no words replace it.
    """

    messages: Sequence[Message]
    tools: Sequence[Declaration] = ()
    temperature: float | None = None
    max_tokens: int | None = None
    stop: Sequence[str] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    needed: frozenset[str] = frozenset()
    own_format: bool = False


_ALPHABET = string.digits + string.ascii_letters
_LENGTH = 9
_SHORT = re.compile(r"[a-zA-Z0-9]{9}\Z")
_SIGNED = "__thought__"


def call_id(taken: Container[str] = ()) -> str:
    """Return a new random id, different from those taken."""
    while True:
        candidate = "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))
        if candidate not in taken:
            return candidate


def derived_id(seed: str, taken: Container[str]) -> str:
    """Return the same id for the same seed, past those taken."""
    attempt = 0
    while True:
        number = int.from_bytes(hashlib.sha256(f"{attempt}:{seed}".encode()).digest())
        letters = []
        for _ in range(_LENGTH):
            number, rest = divmod(number, len(_ALPHABET))
            letters.append(_ALPHABET[rest])
        candidate = "".join(letters)
        if candidate not in taken:
            return candidate
        attempt += 1


def may_stay(wire_id: str, *, signed: bool = True) -> bool:
    """True if an id can be used unchanged.

    With `signed`, an id with a thought signature can be used as well.
    """
    return _SHORT.match(wire_id) is not None or (signed and _SIGNED in wire_id)


MOST_SHOWN = 200  # characters
_MOST_SEARCHED = 200_000  # characters; who pastes a book into a chat finds it by its beginning
_NOT_SEARCHED = re.compile(r"[\\\x00\ud800-\udfff\s]+")  # see `columns`: nothing of it is ever escaped


def opening_text(messages: Sequence[Message]) -> str | None:
    """Return the beginning of the first question, on one line.

    It has at most `MOST_SHOWN` characters; `None` if there is no question.
    """
    for message in messages:
        if message.get("role") == "user" and (text := _to_plain_text(" ".join(_iterate_texts(message)))):
            return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 1]}…"
    return None


def searchable_text(messages: Sequence[Message]) -> str:
    """Return the text of both sides, normalized by `search_words`."""
    return search_words(" ".join(text for message in messages for text in _iterate_texts(message)))[
        :_MOST_SEARCHED
    ]


def search_words(text: str) -> str:
    """Return a text as it is searched: case-folded, with single spaces."""
    return _to_plain_text(text).casefold()


def _to_plain_text(text: str) -> str:
    return _NOT_SEARCHED.sub(" ", text).strip()


def _iterate_texts(message: Message) -> Iterator[str]:
    if message.get("role") not in ("user", "assistant"):
        return
    content = message.get("content")
    if isinstance(content, str):
        yield content
    for part in json_values.as_sequence(content):
        yield json_values.as_text(json_values.as_mapping(part).get("text"))
    yield json_values.as_text(message.get("refusal"))
