"""One turn of the model, in any dialect."""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace

from beckon_agent.core.model_types import (
    AnswerDetails,
    Declaration,
    Logprobs,
    Message,
    ModelRequest,
    RefusalReason,
    RefusedCall,
    TextCalls,
    ToolCall,
    Turn,
)
from beckon_agent.core.run_events import ReasoningDelta, RefusalDelta, StreamItem, TextDelta
from beckon_agent.core.run_types import Options
from beckon_agent.dialects.bare_json import PROMPTED
from beckon_agent.dialects.base import Allows, Dialect, Item, RawCall, Reader, Rendered
from beckon_agent.dialects.constrained import CONSTRAINED, answer_format
from beckon_agent.dialects.provenance import Provenance
from beckon_agent.dialects.registry import dialect_named, guess_dialect, native_dialect
from beckon_agent.model.capabilities import needed_fields
from beckon_agent.model.client import ModelClient
from beckon_agent.model.errors import ModelRefused, SchemaRejected, ToolsNotSupported
from beckon_agent.model.instructions import (
    add_instruction,
    choice_instruction,
    forced_name,
    forced_tools,
    format_instruction,
    is_forced,
)
from beckon_agent.model.messages import pair_calls
from beckon_agent.run.answer_check import Demand, ForcedCall, JsonOutput, stream_checked
from beckon_agent.telemetry.run_spans import record_model
from beckon_contract.resources.tools import Tool, declare
from beckon_contract.schema.lowering import Profile

logger = logging.getLogger(__name__)

_CACHED_DECLARATIONS = 2048
_NOTED_REFUSALS = 20
_NO_SCHEMA = re.compile(r"response[_ ]format|json[_ ]schema", re.IGNORECASE)
_SEARCHED_AT_ONCE = 20_000  # characters, about 10 ms


class DialectModel:
    """A model and its dialect.

    With `auto` it begins with native tool calling, and falls back for good when the
    server says that it has no tools (vllm#30613, Ollama's "does not support tools").
    `text_calls` selects the markup from which calls are recovered under native tool calling; with
    `never`, `auto` does not fall back, since a text dialect writes its calls as text.
    """

    def __init__(self, client: ModelClient, dialect_name: str, text_calls: TextCalls = "own") -> None:
        """Raise `ValueError` for an unknown dialect."""
        self._client = client
        self._text_calls = text_calls
        self._may_fall_back = dialect_name == "auto" and text_calls != "never"
        if dialect_name == "auto":
            dialect_name = "native"
        self._dialect = dialect_named(dialect_name)
        self._few_keywords = False
        self._declared: dict[tuple[str, str], tuple[Tool, Profile, Declaration]] = {}

    @property
    def name(self) -> str:
        """The model's name at its server, and the dialect in use."""
        return f"{self._client.model or 'the first of its server'} ({self._dialect.name})"

    async def tool_limit(self) -> int:
        """Return the limit of declarations in one request; raises `ModelError`."""
        await self._client.choose_model()
        return self._client.profile.tool_limit

    def stream(
        self, messages: Sequence[Message], tools: Sequence[Tool], options: Options
    ) -> AsyncGenerator[StreamItem]:
        """Return the pieces of one answer; the last item is the whole `Turn`. They raise `ModelError`."""
        demand = self._find_demand(tools, options)
        if demand is None:
            return self._stream_adapted(messages, tools, options)
        return stream_checked(lambda prompt: self._stream_adapted(prompt, tools, options), messages, demand)

    def _find_demand(self, tools: Sequence[Tool], options: Options) -> Demand | None:
        """Return what the request wants of this answer, `None` if any will do."""
        choice, wanted = options.extra.get("tool_choice"), options.extra.get("response_format")
        if tools and is_forced(choice):
            name = forced_name(choice)
            names = [name] if name else [tool.name for tool in _allowed_tools(tools, options)]
            return ForcedCall(choice, frozenset(names))
        if wanted is None:
            return None

        def is_sent() -> bool:
            return self._sends_format(tools) and self._client.profile.sends_format(with_tools=bool(tools))

        def learn(constrains: bool) -> None:
            profile = self._client.profile
            if is_sent() and profile.constrains_output is not constrains:
                self._client.profile = replace(profile, constrains_output=constrains)

        return JsonOutput(wanted, lambda: is_sent() and self._client.profile.constrains_output is True, learn)

    def _sends_format(self, tools: Sequence[Tool]) -> bool:
        """True if the server may form the whole answer: calls in text have a form of their own."""
        return self._dialect.native or not tools

    def _say_in_words(
        self,
        dialect: Dialect,
        messages: Sequence[Message],
        declarations: list[Declaration],
        options: Options,
    ) -> tuple[Sequence[Message], list[Declaration], Mapping[str, object]]:
        """Return a request with instructions for what a text dialect does not send.

        A constrained dialect has a schema as well.
        """
        extra = dict(options.extra)
        if dialect.native or not declarations:
            return messages, declarations, extra
        choice, wanted = extra.pop("tool_choice", None), extra.pop("response_format", None)
        if is_forced(choice):
            messages = add_instruction(messages, choice_instruction(choice))
            declarations = forced_tools(choice, declarations)
        elif wanted is not None:
            messages = add_instruction(messages, format_instruction(wanted))
        if dialect is CONSTRAINED:
            extra["response_format"] = answer_format(declarations, choice)
        return messages, declarations, extra

    async def _stream_adapted(
        self, messages: Sequence[Message], tools: Sequence[Tool], options: Options
    ) -> AsyncGenerator[StreamItem]:
        """Yield the pieces of one answer, after what a refusal teaches."""
        await self._client.choose_model()
        while True:
            manner = self._manner(tools, options)
            try:
                async with aclosing(self._stream_answer(messages, tools, options)) as items:
                    async for item in items:
                        yield item
            except _Outdated:
                continue
            except ModelRefused as error:
                if self._manner(tools, options) == manner and not self._learn_from_refusal(error, manner[0]):
                    raise
            else:
                return

    def _manner(self, tools: Sequence[Tool], options: Options) -> tuple[Dialect, bool]:
        """Return the dialect of a request, and True if declarations use fewer keywords.

        Both may change during a run, when this or another run learns more about the server. The prompted
        dialect is constrained where the server can, unless the client has a format of its own.
        """
        constrains = self._dialect is PROMPTED and self._client.profile.answer_schema
        if constrains and tools and "response_format" not in options.extra:
            return CONSTRAINED, True
        return self._dialect, self._few_keywords

    async def _stream_answer(
        self, messages: Sequence[Message], tools: Sequence[Tool], options: Options
    ) -> AsyncGenerator[StreamItem]:
        record_model(self._client.model, self._client.base_url)
        manner = dialect, few_keywords = self._manner(tools, options)
        declarations = self._declare_tools(_allowed_tools(tools, options), few_keywords=few_keywords)
        messages, declarations, extra = self._say_in_words(dialect, messages, declarations, options)
        request = _make_request(dialect.render(pair_calls(messages), declarations), options, extra)
        screen = Screen(messages, declarations)
        reader = self._make_reader(dialect, declarations, screen.allow_calls)
        reading = _Reading(reader, in_thread=screen.is_slow)
        begun = False
        async with aclosing(self._client.stream(request)) as items:
            async for item in items:
                if not begun and self._is_outdated(manner, tools, options):
                    raise _Outdated
                begun = True
                if type(item) is TextDelta:
                    logprobs = item.logprobs if dialect.native else ()
                    for piece in await reading.feed(item.text, logprobs):
                        yield piece
                elif isinstance(item, Turn):
                    for piece in await reading.finish(called=bool(item.calls)):
                        yield piece
                    yield replace(
                        item,
                        text=reading.text,
                        calls=(*item.calls, *reading.calls),
                        refused=tuple(screen.refused),
                        details=reading.complete_details(item.details),
                    )
                elif isinstance(item, ReasoningDelta | RefusalDelta):
                    yield item

    def _make_reader(self, dialect: Dialect, declarations: Sequence[Declaration], allows: Allows) -> Reader:
        """Return a reader for one answer.

        It is the reader of the text dialect or, under native tool calling, of the family of the model.
        """
        if dialect.native:
            dialect = native_dialect(self._client.model, self._client.base_url, self._text_calls)
        return dialect.make_reader(declarations, allows=allows)

    def _declare_tools(self, tools: Sequence[Tool], *, few_keywords: bool) -> list[Declaration]:
        """Return the declarations; each is lowered once while in use."""
        lowering = Profile.LLAMA_CPP if few_keywords else Profile(self._client.profile.lowering)
        return [self._declared_once(tool, lowering) for tool in tools]

    def _declared_once(self, tool: Tool, lowering: Profile) -> Declaration:
        key = tool.namespace, tool.name
        known = self._declared.pop(key, None)
        if known is None or known[1] is not lowering or not _reads_as(known[0], tool):
            known = tool, lowering, declare(tool, lowering)
        self._declared[key] = known  # at the end: the first one is the least recently used
        if len(self._declared) > _CACHED_DECLARATIONS:
            del self._declared[next(iter(self._declared))]
        return known[2]

    def _is_outdated(self, manner: tuple[Dialect, bool], tools: Sequence[Tool], options: Options) -> bool:
        """True if the server, known better by now, needs another manner of request.

        It falls back if the server has dropped the tools without an error.
        """
        if tools and manner[0].native and not self._client.profile.template_tools:
            self._fall_back(ToolsNotSupported("the model's chat template has no place for them"))
        return self._manner(tools, options) != manner

    def _learn_from_refusal(self, error: ModelRefused, dialect: Dialect) -> bool:
        """Change the manner of requests after a refusal. Return True if that is a change."""
        if dialect is CONSTRAINED:
            return self._stop_constraining(error)
        if isinstance(error, SchemaRejected) and self._lower_further(error):
            return True
        return isinstance(error, SchemaRejected | ToolsNotSupported) and self._fall_back(error)

    def _stop_constraining(self, error: ModelRefused) -> bool:
        """Leave answers unconstrained from now on, if the refusal is about that."""
        if not (isinstance(error, SchemaRejected) or _NO_SCHEMA.search(error.message)):
            return False
        logger.warning("the model server takes no schema for answers (%s); the prompt has to do", error)
        self._client.profile = replace(self._client.profile, answer_schema=False)
        return True

    def _lower_further(self, error: SchemaRejected) -> bool:
        """Declare with the fewest keywords from now on. Return True if that is a change."""
        if self._few_keywords:
            return False
        logger.warning("the model server refuses a schema (%s); declaring with fewer keywords", error)
        self._few_keywords = True
        return True

    def _fall_back(self, error: ModelRefused) -> bool:
        """Speak a text dialect from now on. Return True if that is allowed and a change."""
        if not self._may_fall_back:
            return False
        self._may_fall_back = False
        self._dialect = guess_dialect(self._client.model)
        logger.warning("the model server takes no tools (%s); from now on: %s", error, self._dialect.name)
        return True


def _allowed_tools(tools: Sequence[Tool], options: Options) -> Sequence[Tool]:
    """Return the tools among which a forced answer may choose.

    In other answers the list stays as it is, and providers' caches fit: calls of other tools are refused.
    """
    if options.allowed_tools is None or not is_forced(options.extra.get("tool_choice")):
        return tools
    return [tool for tool in tools if tool.name in options.allowed_tools]


def _make_request(rendered: Rendered, options: Options, extra: Mapping[str, object]) -> ModelRequest:
    return ModelRequest(
        messages=rendered.messages,
        tools=rendered.tools,
        temperature=options.temperature,
        max_tokens=options.max_tokens,
        stop=(*rendered.stop, *options.stop),
        extra=extra,
        needed=needed_fields(options),
    )


class _Outdated(Exception):
    """The request was made before the server was known better; nothing of its answer was shown."""


def _reads_as(before: Tool, now: Tool) -> bool:
    """True if a tool looks to the model as it did before. Policies change others of its members."""
    return before.parameters is now.parameters and before.description == now.description


class _Reading:
    """The findings of a reader so far: the shown text and the calls.

    With `in_thread`, the reader may take long, and works in a thread beside the event loop.
    """

    def __init__(self, reader: Reader, *, in_thread: bool) -> None:
        self._reader = reader
        self._in_thread = in_thread
        self.calls: list[ToolCall] = []
        self._texts: list[str] = []
        self._held: Logprobs = ()
        self._logprobs: Logprobs = ()

    @property
    def text(self) -> str:
        """The text shown so far."""
        return "".join(self._texts)

    async def feed(self, text: str, logprobs: Logprobs) -> list[TextDelta]:
        """Read the next piece of the answer; return the text to show, with its log probabilities."""
        self._held += logprobs
        if self._in_thread:
            return self._take_items(await asyncio.to_thread(self._reader.feed, text))
        return self._take_items(self._reader.feed(text))

    async def finish(self, *, called: bool) -> list[TextDelta]:
        """Read the end of the answer; return the text to show.

        `called` is True if the server sent calls of its own.
        """
        if self._in_thread:
            return self._take_items(await asyncio.to_thread(self._reader.finish, called=called))
        return self._take_items(self._reader.finish(called=called))

    def _take_items(self, items: Sequence[Item]) -> list[TextDelta]:
        shown: list[TextDelta] = []
        for item in items:
            if isinstance(item, ToolCall):
                self.calls.append(item)
            elif item.text:
                shown.append(item)
                self._texts.append(item.text)
        if self._held and items:
            held, self._held = self._held, ()
            if shown and len(shown) == len(items):  # else the tokens are those of a call as well
                shown[0] = TextDelta(shown[0].text, held)
                self._logprobs += held
        return shown

    def complete_details(self, details: AnswerDetails) -> AnswerDetails:
        """Return the details of the answer, with the log probabilities of the shown text."""
        return details if details.logprobs == self._logprobs else replace(details, logprobs=self._logprobs)


class Screen:
    """The filter for calls read from text; `refused` are the refused ones."""

    def __init__(self, messages: Sequence[Message], declarations: Sequence[Declaration]) -> None:
        self.refused: list[RefusedCall] = []
        self._offered = {str(tool.get("function", tool).get("name")) for tool in declarations}
        self._provenance = Provenance(messages, declarations)

    @property
    def is_slow(self) -> bool:
        """True if `allows` may take more than a few milliseconds."""
        return self._provenance.size > _SEARCHED_AT_ONCE

    def allow_calls(self, calls: Sequence[RawCall], markup: str) -> bool:
        """True if all of these calls may be made.

        Their tools must be offered, and the calls must not come from the conversation.
        """
        unknown = [call for call in calls if call.name not in self._offered]
        if unknown:
            return self._refuse_calls(unknown, "not_offered")
        if self._provenance.contains_calls(calls, markup):
            return self._refuse_calls(calls, "brought_along")
        return True

    def _refuse_calls(self, calls: Sequence[RawCall], reason: RefusalReason) -> bool:
        for call in calls[:_NOTED_REFUSALS]:
            name = call.name if call.name in self._offered else ""
            logger.warning(
                "a call of %s in the text of an answer stays text: %s", name or "(unknown)", reason
            )
            self.refused.append(RefusedCall(name, reason))
        return False
