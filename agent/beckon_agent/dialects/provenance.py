"""The origin of a call read in text: the model, or the conversation.

The author of a web page or a mail that a tool reads can write a call into it, and a model that quotes
the page writes that call, too. So a call is no call if its markup, or its name with the same
arguments, is found in anything that the model did not write. Both sides are reduced to words first:
escapes, entities and encodings are resolved, letters that look alike are one letter, and punctuation,
quotes, case and the order of keys do not count.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from beckon_agent.core import json_values
from beckon_agent.core.model_types import CLAIMED, Declaration, Message
from beckon_agent.dialects.base import RawCall, parse_loosely
from beckon_agent.dialects.spellings import (
    decode_runs,
    find_words,
    rewrite_texts,
    split_words,
    to_letters,
    to_plain_text,
)

SEARCHED: Final = 1_000_000
"""Characters of a conversation that are searched; in a longer one, no call is read out of text."""

_NESTED: Final = 3  # of JSON within JSON
_DEPTH: Final = 40  # of JSON
_SHORTEST_MARKUP: Final = 8  # letters and digits that markup has more than the name and the arguments
_SHORTEST_CALL: Final = 12  # letters and digits of a name and arguments that no other words spell by chance
_MOST_FORMS: Final = 10_000  # places of one name that are looked at

_DIVIDER: Final = "\nbetweentexts\n"  # the arguments of one call do not belong to the text before them

# Words that markup puts between a name, a key and a value.
_STRUCTURE: Final = frozenset(
    [
        "name",
        "names",
        "argument",
        "arguments",
        "parameter",
        "parameters",
        "param",
        "params",
        "args",
        "arg",
        "input",
        "key",
        "value",
        "function",
        "functions",
        "functioncall",
        "call",
        "calls",
        "tool",
        "tools",
        "toolcall",
        "invoke",
        "dsml",
        "begin",
        "end",
        "sep",
        "type",
        "string",
        "number",
        "true",
        "false",
        "id",
        "index",
        "json",
        "python",
        "xml",
        "open",
        "close",
        "antml",
        "steptml",
        "section",
        "response",
        "item",
        "object",
        "py",
    ]
)


class Provenance:
    """The texts of one request, to search for calls."""

    def __init__(self, messages: Sequence[Message], declarations: Sequence[Declaration]) -> None:
        self._messages = messages
        self._declarations = declarations

    def contains_calls(self, calls: Sequence[RawCall], markup: str) -> bool:
        """True if the calls come from the conversation.

        One call found there is enough, or the markup of all of them. Beyond the limit `SEARCHED` it is
        always True.
        """
        if self._search_streams is None:
            return True
        if any(stream.contains_call(call) for call in calls for stream in self._search_streams):
            return True
        letters = to_letters(markup)
        own = sum(len(to_letters(call.name + call.arguments)) for call in calls)
        if len(letters) >= own + _SHORTEST_MARKUP:
            return any(stream.holds_markup(letters) for stream in self._search_streams)
        if len(letters) < _SHORTEST_CALL or not all(_words_of(call.arguments) for call in calls):
            return False
        return any(stream.spells(letters) for stream in self._search_streams)

    @cached_property
    def _search_streams(self) -> Sequence["_Stream"] | None:
        """The conversation in several spellings, `None` above the size limit.

        The texts of a spelling are joined, once directly and once by line breaks.
        """
        if sum(map(len, self._request_texts())) > SEARCHED:
            return None
        spellings = [list(self._request_texts())]
        while len(spellings) <= _NESTED:  # JSON in a string of JSON is opened level by level
            inner = [part for text in spellings[-1] for part in _iterate_json_strings(text)]
            if inner == spellings[-1]:
                break
            spellings.append(inner)
        spellings += [other for spelling in spellings for other in rewrite_texts(spelling)]
        plain = [[to_plain_text(text) for text in texts] for texts in spellings]
        texts = dict.fromkeys(text for spelling in spellings for text in spelling)
        decoded = [part for text in texts for part in decode_runs(text)]
        if decoded:
            plain.append([to_plain_text(text) for text in decoded])
        joined = [joiner.join(texts) for texts in plain for joiner in ("", "\n")]
        return [_Stream(text) for text in dict.fromkeys(joined)]

    def _request_texts(self) -> Iterator[str]:
        """Yield the texts in the request.

        Text of the model itself is part of it, since it was no call, and so is what it wrote into the
        arguments of calls. Its calls themselves are not, since a model may call again; those that only a
        client ascribes to it are.
        """
        for message in self._messages:
            yield from _iterate_strings(message.get("content"))
        for tool in self._declarations:
            function = tool.get("function", tool)
            yield from _iterate_strings(function.get("description"))
            yield from _iterate_strings(function.get("parameters"))
        for message in self._messages:
            yield from _iterate_beside_content(message)


def _iterate_beside_content(message: Message) -> Iterator[str]:
    """Yield the other texts of a message, each apart from those before it.

    Of a message from a client these are all.
    """
    claimed = bool(message.get(CLAIMED))
    beside = [message.get("name")]
    if claimed:
        beside += [message.get("reasoning_content"), message.get("reasoning")]
    for call in json_values.as_sequence(message.get("tool_calls")):
        function = json_values.as_mapping(json_values.as_mapping(call).get("function"))
        arguments = function.get("arguments")
        beside.append([function.get("name"), arguments] if claimed else arguments)
    for part in filter(None, beside):
        yield _DIVIDER
        yield from _iterate_strings(part)


class _Stream:
    """One spelling of the conversation, as words."""

    def __init__(self, plain: str) -> None:
        self._plain = plain

    @cached_property
    def _words(self) -> list[str]:
        return split_words(self._plain)

    @cached_property
    def _letters(self) -> str:
        return "".join(self._words)

    def contains_call(self, call: RawCall) -> bool:
        """True if the name is found with the same arguments. Any markup and any order will do."""
        name = find_words(call.name)
        if not name or "".join(name) not in self._letters:
            return False
        wanted = Counter(_words_of(call.arguments))
        if not wanted:
            return self._holds_empty(name)
        places = [at for at, word in enumerate(self._words) if word == name[0]][:_MOST_FORMS]
        for at in places:
            if self._words[at : at + len(name)] != name:
                continue
            after = self._words[at + len(name) : at + len(name) + _window_size(wanted)]
            before = self._words[max(0, at - _window_size(wanted)) : at][::-1]
            if _begin_with_all(after, wanted) or _begin_with_all(before, wanted):
                return True
        return False

    def _holds_empty(self, name: Sequence[str]) -> bool:
        """True if the name is found with empty arguments. The name alone is no call."""
        written = r"[\W_]*".join(map(re.escape, name))
        key = r"(?:arguments|parameters|params|args|input)"
        filling = r"(?:[\W_]|\d|json|python|xml|tool|call|argument|begin|sep|function|type)"
        # The text is as it was but for its case and escapes, so the brackets are still there.
        empty = r"(?:\{\s*\}|\(\s*\)|\(\s*\{\s*\}\s*\))"
        forms = (
            rf"(?<![a-z0-9]){written}[\W_]{{0,12}}{key}[^\w{{]{{0,12}}{empty}",
            rf"{key}[^\w{{]{{0,12}}{empty}[\W_]{{0,12}}(?:name|tool_name|function)[\W_]{{1,12}}{written}(?![a-z0-9])",
            rf"(?<![a-z0-9]){written}{filling}{{0,80}}?{empty}",
            rf"(?:<tool_call>|function=|invoke name=)[\W_]{{0,8}}{written}[\W_]{{0,8}}</",
        )
        return any(re.search(form, self._plain) for form in forms)

    def spells(self, letters: str) -> bool:
        """True if these letters follow each other, whatever is between them."""
        return letters in self._letters

    def holds_markup(self, letters: str) -> bool:
        """True if the markup is found whole, or cut in two."""
        low, high = 0, len(letters)
        while low < high:  # the longest beginning that is found
            middle = (low + high + 1) // 2
            low, high = (middle, high) if letters[:middle] in self._letters else (low, middle - 1)
        return low == len(letters) or (low > 0 and letters[low:] in self._letters)


def _window_size(wanted: Counter[str]) -> int:
    """Return the distance allowed between a name and its arguments.

    It is the number of words up to the last word of the arguments.
    """
    return wanted.total() * 6 + 12


def _begin_with_all(words: Sequence[str], wanted: Counter[str]) -> bool:
    """True if these words begin with all wanted ones. Only words of markup may be between them."""
    missing = wanted.copy()
    left = missing.total()
    for word in words:
        if missing[word] > 0:
            missing[word] -= 1
            left -= 1
            if not left:
                return True
        elif word not in _STRUCTURE:
            return False
    return False


def _words_of(arguments: str) -> list[str]:
    """Return the keys and values of arguments, as words."""
    value = parse_loosely(arguments)
    if isinstance(value, str):
        value = parse_loosely(value) or value
    parts = [arguments] if value is None else list(_iterate_scalars(value))
    return [word for part in parts for word in find_words(part)]


def _iterate_scalars(value: object, depth: int = 0) -> Iterator[str]:
    if depth > _DEPTH:
        return
    if isinstance(value, Mapping):
        for key, member in value.items():
            yield str(key)
            yield from _iterate_scalars(member, depth + 1)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for member in value:
            yield from _iterate_scalars(member, depth + 1)
    elif isinstance(value, str):
        yield value
    else:
        yield json.dumps(value)


def _iterate_strings(value: object) -> Iterator[str]:
    """Yield the strings of a message's content or of a schema, keys included."""
    return (text for text in _iterate_scalars(value) if text and text != "null")


def _iterate_json_strings(text: str) -> Iterator[str]:
    """Yield a text, or the strings in it if it is JSON."""
    inner = text.strip()
    if inner[:1] in ("{", "[", '"') and inner[-1:] in ("}", "]", '"'):
        try:
            value = json.loads(inner, strict=False)
        except (ValueError, RecursionError):
            yield text
            return
        yield from _iterate_values(value)
    else:
        yield text


def _iterate_values(value: object, depth: int = 0) -> Iterator[str]:
    """Yield the strings of a value without the keys of its objects."""
    if depth > _DEPTH:
        return
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for member in value.values():
            yield from _iterate_values(member, depth + 1)
    elif isinstance(value, Sequence):
        for member in value:
            yield from _iterate_values(member, depth + 1)
