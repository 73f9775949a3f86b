"""The client of a model server: one chat completion request, and its answer as a stream."""

import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

import stamina

from beckon_agent.core import json_values
from beckon_agent.core.model_types import (
    BROKE_OFF,
    Declaration,
    Message,
    ModelRequest,
    Turn,
    Usage,
    sum_usages,
)
from beckon_agent.core.run_events import ReasoningDelta, StreamItem, TextDelta
from beckon_agent.model.capabilities import (
    Profile,
    adapted_profile,
    find_refused_field,
    learn_from_properties,
    profile_for,
)
from beckon_agent.model.errors import (
    FieldNotSupported,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    StreamBroken,
)
from beckon_agent.model.instructions import (
    add_instruction,
    choice_instruction,
    forced_tools,
    format_instruction,
    is_forced,
)
from beckon_agent.model.messages import call_ids, repair_messages
from beckon_agent.model.response import AnswerReader
from beckon_agent.model.transport import Patience, Transport

Body = dict[str, Any]
"""The members of one request to `/chat/completions`."""

_OURS = frozenset({"model", "messages", "tools", "stream", "n"})
_WIDER = 4


def chat_body(model: str, request: ModelRequest, profile: Profile) -> Body:
    """Return the body of a streamed request.

    Raises `ModelRefused` for more tools than the provider takes: which of them to
    leave out is not for a client to choose.
    """
    if len(request.tools) > profile.max_tools:
        raise ModelRefused(
            f"{len(request.tools)} tools are more than the {profile.max_tools} that {profile.name} takes",
            code="array_above_max_length",
        )
    for name in sorted(request.needed & profile.refuses - {"response_format"}):  # it can be said in words
        raise FieldNotSupported(name, f"{profile.name} models refuse it")
    body: Body = {key: value for key, value in request.extra.items() if key not in _OURS}
    body |= {
        "temperature": request.temperature,
        profile.limit_field: request.max_tokens,
        "stop": list(request.stop) or None,
        "stream_options": {"include_usage": True},
    }
    body |= _tool_fields(request, profile)
    if not profile.sends_format(with_tools="tools" in body):
        body.pop("response_format", None)
    body = {key: value for key, value in body.items() if value is not None and key not in profile.refuses}
    messages = repair_messages(_instruct_model(request, profile), profile)
    return {"model": model, "messages": messages, "stream": True, **body}


def without_streaming(body: Body, profile: Profile) -> Body:
    """Return the same request without streaming."""
    members = {key: value for key, value in body.items() if key != "stream_options"}
    return {**members, **profile.unstreamed, "stream": False}


def widen_limit(request: ModelRequest, turn: Turn) -> ModelRequest | None:
    """Return the request with a higher limit, `None` if none is needed.

    It is needed if reasoning used up the limit: such an answer has neither text nor calls, and ends with
    `length`.
    """
    answered = turn.text or turn.calls or turn.details.refusal
    if request.max_tokens is None or turn.finish_reason != "length" or answered:
        return None
    return replace(request, max_tokens=request.max_tokens * _WIDER)


def required_parameters(tools: Sequence[Declaration]) -> dict[str, list[str]]:
    """Return the names of each declared tool's required parameters, by tool."""
    by_tool: dict[str, list[str]] = {}
    for tool in tools:
        function = json_values.as_mapping(tool.get("function"))
        required = json_values.as_mapping(function.get("parameters")).get("required")
        by_tool[json_values.as_text(function.get("name"))] = (
            list(map(str, required)) if isinstance(required, list) else []
        )
    return by_tool


def _replaceable(body: Body, request: ModelRequest) -> Body:
    """Return the members that the client may change after a refusal."""
    return {
        name: value for name, value in body.items() if name != "response_format" or not request.own_format
    }


def _tool_fields(request: ModelRequest, profile: Profile) -> Body:
    choice = request.extra.get("tool_choice")
    # With tool_choice none, some models leak the markup of calls (DeepSeek R1): they get no tools at all.
    if not request.tools or choice == "none":
        return {"tool_choice": None, "parallel_tool_calls": None}
    if not is_forced(choice) or profile.forced_choice:
        return {"tools": [_to_declaration(tool, profile) for tool in request.tools]}
    tools = forced_tools(choice, request.tools)
    return {"tools": [_to_declaration(tool, profile) for tool in tools], "tool_choice": None}


def _instruct_model(request: ModelRequest, profile: Profile) -> Sequence[Message]:
    """Return the messages, with instructions in place of the fields that the server does not take."""
    messages, choice = request.messages, request.extra.get("tool_choice")
    if request.tools and is_forced(choice) and not profile.forced_choice:
        messages = add_instruction(messages, choice_instruction(choice))
    wanted = request.extra.get("response_format")
    if wanted is not None and not profile.sends_format(with_tools=bool(request.tools)):
        messages = add_instruction(messages, format_instruction(wanted))
    return messages


def _to_declaration(tool: Declaration, profile: Profile) -> Mapping[str, object]:
    function = json_values.as_mapping(tool.get("function"))
    if profile.strict or "strict" not in function:
        return tool
    return {**tool, "function": {key: value for key, value in function.items() if key != "strict"}}


_LOG = logging.getLogger(__name__)
_MAX_ADAPTATIONS = 4

_Piece = TextDelta | ReasoningDelta


class ModelClient:
    """One model behind one server. Close it, or use it as an asynchronous context manager."""

    def __init__(
        self,
        base_url: str,
        api_key: str,
        model: str,
        profile: Profile | None = None,
        *,
        patience: Patience | None = None,
    ) -> None:
        """Make a client; nothing is sent yet.

        An empty `api_key` sends no Authorization header. Without a profile, the table has one for this
        server and model. An empty `model` is the first one listed by the server. Raises `ValueError` for an
        unusable base URL or key.
        """
        self.base_url = base_url
        self.model = model
        self.profile = profile or profile_for(base_url, model)
        """What the server takes; a refusal that teaches more changes it."""
        self._patience = patience or Patience()
        self._transport = Transport(base_url, api_key, self._patience)
        self._inspected = False

    async def choose_model(self) -> None:
        """Take the server's first model if none was named. Raises `ModelError`."""
        if not self.model:
            names = await self._transport.list_models()
            if not names:
                raise self._transport.no_model_list_error()
            self.model = names[0]
            self.profile = profile_for(self.base_url, self.model)
            _LOG.info("no model was named; taking the first of the server's: %s", self.model)

    async def list_models(self) -> list[str]:
        """Return the names of the server's listed models. Raises `ModelError`."""
        return await self._transport.list_models()

    async def has_model(self, model: str) -> bool:
        """True if the server has a model, listed or not. Raises `ModelError`."""
        return await self._transport.has_model(model)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem]:
        """Yield the answer as it comes: deltas, then the calls, then the whole `Turn`.

        Raises `ModelError`. A temporary failure is tried again until the first delta; an answer that breaks
        off after it raises `StreamBroken`. If the stream ends although the server did not mark the answer as
        complete, the request is sent once more if there was no delta yet; else the turn's finish reason is
        `BROKE_OFF`.
        """
        await self.choose_model()
        answer = await self._start_answer(request)
        await self._inspect_server()
        spent: Usage | None = None
        if answer.is_lost():
            _LOG.warning("%s ended its stream without a finish reason or text; asking once more", self.model)
            spent = answer.to_turn().usage
            answer = await self._start_answer(request)
        async with aclosing(answer.pieces()) as pieces:
            async for piece in pieces:
                yield piece
        turn = answer.to_turn()
        turn = replace(turn, usage=sum_usages((spent, turn.usage)))
        wider = widen_limit(request, turn)
        if wider is not None:
            _LOG.info("%s used up its limit for reasoning; asking again with a higher one", self.model)
            answer = await self._start_answer(wider)
            async with aclosing(answer.pieces()) as pieces:
                async for piece in pieces:
                    yield piece
            turn = _join_turns(turn, answer.to_turn())
        turn = await self._with_arguments(answer, turn)
        for call in turn.calls:
            yield call
        yield turn

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _inspect_server(self) -> None:
        """Learn from the properties of llama.cpp's server, once. Neither answers nor refusals show them."""
        if self._inspected or self._transport.server != "llama.cpp":
            return
        self._inspected = True
        try:
            self.profile = learn_from_properties(self.profile, await self._transport.fetch_properties())
        except ModelError as error:
            _LOG.info("llama.cpp's server shows no properties: %s", error)

    async def _start_answer(self, request: ModelRequest) -> "_StreamedAnswer":
        """Return an answer at its first piece, after all retries.

        If a refusal teaches a change of the profile, the request is sent again with it.
        """
        for _ in range(_MAX_ADAPTATIONS):
            body = chat_body(self.model, request, self.profile)
            try:
                return await self._request_with_retries(request, body)
            except ModelRefused as error:
                learnt = adapted_profile(self.profile, error, _replaceable(body, request), request.needed)
                field = find_refused_field(error, request.needed & body.keys()) if learnt is None else None
                if field is not None:
                    raise FieldNotSupported(field, error.message, status=error.status) from error
                if learnt is None:
                    raise
                _LOG.info("%s teaches how to ask it: %s", self.model, error.message)
                self.profile = learnt
        return await self._request_with_retries(request, chat_body(self.model, request, self.profile))

    async def _request_with_retries(self, request: ModelRequest, body: Body) -> "_StreamedAnswer":
        # A closure, because stamina shows the arguments of what it retries to its hooks.
        async def request_once() -> _StreamedAnswer:
            return await self._send_request(request, body)

        retry = stamina.AsyncRetryingCaller(
            attempts=self._patience.attempts,
            timeout=None,
            wait_initial=self._patience.first_wait,
            wait_max=self._patience.longest_wait,
            wait_jitter=self._patience.first_wait,
        )
        return await retry.on(self._retry_delay)(request_once)

    def _retry_delay(self, error: Exception) -> bool | float:
        """Return a retry decision: True, False, or a wait in seconds."""
        if not isinstance(error, ModelUnavailable):
            return False
        if error.retry_after is None:
            return True
        return error.retry_after if error.retry_after <= self._patience.longest_retry_after else False

    async def _send_request(self, request: ModelRequest, body: Body) -> "_StreamedAnswer":
        """Send one request and read its answer up to the first piece."""
        reader = AnswerReader()
        rest = self._read_pieces(body, reader)
        return _StreamedAnswer(request, body, reader, await anext(rest, None), rest)

    async def _read_pieces(self, body: Body, reader: AnswerReader) -> AsyncGenerator[_Piece]:
        try:
            async with aclosing(self._transport.stream_completion(body, reader.mark_whole)) as received:
                async for payload in received:
                    for piece in reader.feed(payload):
                        yield piece
        except ModelUnavailable:
            if not reader.has_finish_reason:
                raise
        if not reader.spoke:
            raise self._transport.no_answer_error()
        for piece in reader.finish():
            yield piece

    async def _with_arguments(self, answer: "_StreamedAnswer", turn: Turn) -> Turn:
        """Ask once without streaming if a call lost its arguments (vllm#9693)."""
        if turn.finish_reason == BROKE_OFF or not answer.lacks_arguments():
            return turn
        _LOG.info("%s streamed a call without its arguments; asking once without streaming", self.model)
        try:
            again = await self._send_request(answer.request, without_streaming(answer.body, self.profile))
            async with aclosing(again.pieces()) as pieces:
                async for _ in pieces:
                    pass
        except ModelError as error:
            _LOG.warning("asking %s without streaming failed: %s", self.model, error)
            return turn
        second = again.to_turn()
        if not second.calls or again.lacks_arguments():
            return turn
        return replace(turn, calls=second.calls, usage=sum_usages((turn.usage, second.usage)))


@dataclass(frozen=True, slots=True)
class _StreamedAnswer:
    """An answer that has begun: its first piece, if it has any, and the rest."""

    request: ModelRequest
    body: Body
    reader: AnswerReader
    first: _Piece | None
    rest: AsyncGenerator[_Piece]

    async def pieces(self) -> AsyncGenerator[_Piece]:
        """Yield all pieces; raises `StreamBroken` if the answer breaks off."""
        async with aclosing(self.rest):
            if self.first is not None:
                yield self.first
            try:
                async for piece in self.rest:
                    yield piece
            except ModelError as error:
                broken = StreamBroken(f"the answer broke off: {error.message}", status=error.status)
                broken.ours, broken.retry_after = error.ours, error.retry_after
                raise broken from error

    def to_turn(self) -> Turn:
        """Return the whole answer, once all pieces were taken."""
        ids = call_ids(self.request.messages) | call_ids(self.body["messages"])
        return self.reader.to_turn(ids)

    def is_lost(self) -> bool:
        """True if the answer broke off before its first piece."""
        return self.first is None and self.reader.broke_off

    def lacks_arguments(self) -> bool:
        """True if a call came without its tool's required arguments."""
        required = required_parameters(self.request.tools)
        return any(required.get(name) for name in self.reader.without_arguments)


def _join_turns(first: Turn, second: Turn) -> Turn:
    return replace(second, usage=sum_usages((first.usage, second.usage)))
