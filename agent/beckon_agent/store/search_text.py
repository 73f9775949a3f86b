"""The text of a conversation's messages for lists and for the search."""

import re
from collections.abc import Iterator, Sequence

from beckon_agent.core import json_values
from beckon_agent.core.model_types import Message

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
