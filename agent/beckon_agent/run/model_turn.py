"""One turn of the model, in any dialect."""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace

from beckon_agent.core.model_types import (
    Declaration,
    Message,
    ModelRequest,
    Turn,
)
from beckon_agent.core.run_events import ReasoningDelta, RefusalDelta, StreamItem, TextDelta
from beckon_agent.core.run_types import Options
from beckon_agent.dialects.bare_json import PROMPTED
from beckon_agent.dialects.base import Allows, Dialect, Reader, RenderedConversation
from beckon_agent.dialects.constrained import CONSTRAINED, answer_format
from beckon_agent.dialects.registry import dialect_named, guess_dialect, native_dialect
from beckon_agent.model.capabilities import needed_fields
from beckon_agent.model.client import ModelClient
from beckon_agent.model.errors import ModelRefused, ModelUnavailable, SchemaRejected, ToolsNotSupported
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
from beckon_agent.run.answer_constraint import AnswerConstraint, Outdated
from beckon_agent.run.answer_reading import AnswerReading, TextCallFilter
from beckon_agent.telemetry.run_spans import record_model
from beckon_contract.resources.agent_resource import TextCalls
from beckon_contract.resources.tools import Tool, declare
from beckon_contract.schema.lowering import Profile

logger = logging.getLogger(__name__)

_CACHED_DECLARATIONS = 2048
_DROPPED = (
    "the chat template of %s has no place for tools, and its server drops them without an error: the model "
    "never makes a call; set the dialect prompted (BECKON_DIALECT, or spec.model.dialect of an Agent)"
)


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
        self._constraint = AnswerConstraint(client)
        self._text_calls = text_calls
        self._may_fall_back = dialect_name == "auto" and text_calls != "never"
        if dialect_name == "auto":
            dialect_name = "native"
        self._dialect = dialect_named(dialect_name)
        self._few_keywords = self._reported_drop = False
        self._declared: dict[tuple[str, str], tuple[Tool, Profile, Declaration]] = {}

    @property
    def name(self) -> str:
        """The model's name at its server, and the dialect in use."""
        dropped = self._dialect.native and not self._client.profile.template_tools
        dialect = f"{self._dialect.name}; its chat template drops tools" if dropped else self._dialect.name
        return f"{self._client.model or 'the first of its server'} ({dialect})"

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

    def _add_instructions(
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
        begun = False
        while True:
            manner = self._choose_dialect(tools, options)
            try:
                async with aclosing(self._stream_answer(messages, tools, options)) as items:
                    async for item in items:
                        begun = True
                        yield item
            except Outdated:
                continue
            except (ModelRefused, ModelUnavailable) as error:
                if begun or not self._learn_from_error(error, manner, tools, options):
                    raise
            else:
                self._constraint.note_answer()
                return

    def _choose_dialect(self, tools: Sequence[Tool], options: Options) -> tuple[Dialect, bool]:
        """Return the dialect of a request, and True if declarations use fewer keywords.

        Both may change during a run, when this or another run learns more about the server. The prompted
        dialect is constrained, and a forced call in every text dialect, unless the server is known not to
        constrain answers or the client has a format of its own.
        """
        forced = not self._dialect.native and is_forced(options.extra.get("tool_choice"))
        wanted = tools and (self._dialect is PROMPTED or forced) and "response_format" not in options.extra
        if wanted and self._constraint.may_be_sent:
            return CONSTRAINED, True
        return self._dialect, self._few_keywords

    def _stream_answer(
        self, messages: Sequence[Message], tools: Sequence[Tool], options: Options
    ) -> AsyncGenerator[StreamItem]:
        record_model(self._client.model, self._client.base_url)
        manner = dialect, few_keywords = self._choose_dialect(tools, options)
        declarations = self._declare_tools(_allowed_tools(tools, options), few_keywords=few_keywords)
        messages, declarations, extra = self._add_instructions(dialect, messages, declarations, options)
        rendered = dialect.render(pair_calls(messages), declarations)
        request = _make_request(rendered, options, extra, own_format=dialect is CONSTRAINED)
        screen = TextCallFilter(messages, declarations)
        reader = self._make_reader(dialect, declarations, screen.allow_calls)
        reading = AnswerReading(reader, in_thread=screen.is_slow)
        answer = self._read_answer(
            request, reading, screen, lambda: self._is_outdated(manner, tools, options), native=dialect.native
        )
        return self._constraint.watch_answer(answer, reading) if dialect is CONSTRAINED else answer

    async def _read_answer(
        self,
        request: ModelRequest,
        reading: AnswerReading,
        screen: TextCallFilter,
        is_outdated: Callable[[], bool],
        *,
        native: bool,
    ) -> AsyncGenerator[StreamItem]:
        """Yield the pieces of one answer. The text of a text dialect has no log probabilities."""
        begun = False
        async with aclosing(self._client.stream(request)) as items:
            async for item in items:
                if not begun and is_outdated():
                    raise Outdated
                begun = True
                if type(item) is TextDelta:
                    for piece in await reading.feed(item.text, item.logprobs if native else ()):
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
        if known is None or known[1] is not lowering or not _looks_the_same(known[0], tool):
            known = tool, lowering, declare(tool, lowering)
        self._declared[key] = known  # at the end: the first one is the least recently used
        if len(self._declared) > _CACHED_DECLARATIONS:
            del self._declared[next(iter(self._declared))]
        return known[2]

    def _is_outdated(self, manner: tuple[Dialect, bool], tools: Sequence[Tool], options: Options) -> bool:
        """True if the server, known better by now, needs another manner of request.

        It falls back if the server has dropped the tools without an error, or says so if it may not.
        """
        if tools and manner[0].native and not self._client.profile.template_tools:
            no_place = ToolsNotSupported("the model's chat template has no place for them")
            if not self._fall_back(no_place) and not self._reported_drop:
                self._reported_drop = True
                logger.warning(_DROPPED, self._client.model)
        return self._choose_dialect(tools, options) != manner

    def _learn_from_error(
        self,
        error: ModelRefused | ModelUnavailable,
        manner: tuple[Dialect, bool],
        tools: Sequence[Tool],
        options: Options,
    ) -> bool:
        """Return True if the request may succeed in another manner."""
        changed = self._choose_dialect(tools, options) != manner
        if manner[0] is not CONSTRAINED:
            self._constraint.note_error()
        elif self._constraint.is_cause(error):
            return True
        return isinstance(error, ModelRefused) and (changed or self._learn_from_refusal(error))

    def _learn_from_refusal(self, error: ModelRefused) -> bool:
        """Change the manner of requests after a refusal. Return True if that is a change."""
        if isinstance(error, SchemaRejected) and self._lower_further(error):
            return True
        return isinstance(error, SchemaRejected | ToolsNotSupported) and self._fall_back(error)

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


def _make_request(
    rendered: RenderedConversation, options: Options, extra: Mapping[str, object], *, own_format: bool
) -> ModelRequest:
    return ModelRequest(
        messages=rendered.messages,
        tools=rendered.tools,
        temperature=options.temperature,
        max_tokens=options.max_tokens,
        stop=(*rendered.stop, *options.stop),
        extra=extra,
        needed=needed_fields(options),
        own_format=own_format,
    )


def _looks_the_same(before: Tool, now: Tool) -> bool:
    """True if a tool looks to the model as it did before. Policies change others of its members."""
    return before.parameters is now.parameters and before.description == now.description
