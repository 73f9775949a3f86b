"""A test double of the platform around one tool: its calls as a model makes them, with no platform.

    from beckon_tools.testing import call_tool

    def test_an_unknown_order_is_told() -> None:
        assert call_tool(order_status, {"number": 9}).message == "there is no order 9"

`Trial` shows the rest: duplicates, expiry, progress, and answers that come later.
"""

import asyncio
import inspect
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import Any, Literal

import httpx
import orjson

from beckon_contract.cloudevents.events import CloudEvent, from_http, to_binary
from beckon_contract.cloudevents.extensions import CAUSE, INPUT_REQUIRED, PROGRESS, STATE, is_acceptance
from beckon_contract.inputs import Form, InputRequest
from beckon_runtime.problem import TYPE_BASE
from beckon_tools.app import ToolApp
from beckon_tools.declaration import AnyTool
from beckon_tools.outbox import taken_by
from beckon_tools.settings import Settings

_SOURCE = "/beckon/agents/default/trial"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a call: `result`, or `reason` and `message` of a failure.

    `reason` is "invalid_arguments", "tool_failed", "outcome_unknown" or "timeout", as a model reads it,
    or the kind of problem that a Broker sees: "try-again" with the `status` 503 for `Retry`,
    "tool-crashed" with 500 for an exception of an idempotent tool. `later` is True if the call is
    accepted, and its ticket answers it; `form` is the form that the call puts to a person, and `request` all
    that it requests before it goes on.
    """

    status: int
    result: object = None
    reason: str = ""
    message: str = ""
    later: bool = False
    request: InputRequest | None = None
    event: CloudEvent | None = field(default=None, repr=False)

    @property
    def failed(self) -> bool:
        """True if the call failed, with a `reason`."""
        return bool(self.reason)

    @property
    def form(self) -> Form | None:
        """The form that a person is shown."""
        return None if self.request is None else self.request.form


class Trial:
    """One tool, with a stand-in for the Broker around it.

    `runs` counts how often the function has run. In a `with` block, `reports` are the reports of
    progress and `answers` the answers that came later, by the id of their call.
    """

    def __init__(self, tool: AnyTool, settings: Settings | None = None) -> None:
        self.runs = 0
        self.reports: list[object] = []
        self.answers: dict[str, Answer] = {}
        self._type = tool.type
        self._numbers = itertools.count(1)
        chosen = settings or Settings.model_construct(progress_seconds=0.0)
        self._app = ToolApp(replace(tool, function=self._count_runs(tool.function)), chosen)
        self._taking = taken_by(self._take_event)

    def __enter__(self) -> "Trial":
        self._taking.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._taking.__exit__(None, None, None)

    async def call(
        self,
        arguments: Mapping[str, object] | None = None,
        *,
        id: str = "",  # noqa: A002 - the attribute's name
        expires_in: float | None = None,
        **extensions: str,
    ) -> Answer:
        """Call the tool as an agent does, with the arguments of a model.

        The same `id` again is a call that a Broker delivers twice. `expires_in` is in seconds; less
        than 0 has expired.
        """
        marks: dict[str, str | int] = {"correlationid": "trial", **extensions}
        if expires_in is not None:
            marks["expirytime"] = (datetime.now(UTC) + timedelta(seconds=expires_in)).isoformat()
        event = CloudEvent(
            id=id or f"call-{next(self._numbers)}",
            source=_SOURCE,
            type=self._type,
            datacontenttype="application/json",
            data=orjson.dumps(arguments or {}),
            extensions=marks,
        )
        return await self.deliver(event)

    async def fill_in(
        self,
        waiting: Answer,
        content: Mapping[str, object] | None = None,
        arguments: Mapping[str, object] | None = None,
        *,
        action: Literal["accept", "decline", "cancel"] = "accept",
    ) -> Answer:
        """Answer the form of a call made with the same arguments, as a person does.

        Of several forms, the next one is in the answer.
        """
        if waiting.request is None or waiting.form is None:
            raise ValueError("the call puts no form to a person")
        filled = waiting.request.fill_form({"action": action, "content": content})
        if filled.answer is None:
            return replace(waiting, request=filled)
        return await self.call(arguments, beckoninput=filled.answer.to_attribute())

    async def deliver(self, event: CloudEvent) -> Answer:
        """Deliver an event, as a Broker does."""
        headers, body = to_binary(event)
        transport = httpx.ASGITransport(self._app)
        async with httpx.AsyncClient(transport=transport, base_url="http://trial") as client:
            return _to_answer(await client.post("/", headers=headers, content=body))

    def _take_event(self, event: CloudEvent) -> None:
        if event.extensions.get(STATE) == PROGRESS:
            self.reports.append(event.json())
        else:
            self.answers[str(event.extensions[CAUSE])] = _read_reply(event)

    def _count_runs(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        async def counted_async(*args: object, **kwargs: object) -> object:
            self.runs += 1
            return await function(*args, **kwargs)

        @wraps(function)
        def counted(*args: object, **kwargs: object) -> object:
            self.runs += 1
            return function(*args, **kwargs)

        return counted_async if inspect.iscoroutinefunction(function) else counted


def call_tool(tool: AnyTool, arguments: Mapping[str, object] | None = None) -> Answer:
    """Call a tool once, from a synchronous test."""
    return asyncio.run(Trial(tool).call(arguments))


def _to_answer(response: httpx.Response) -> Answer:
    if response.status_code == 200:
        return _read_reply(from_http(response.headers.raw, response.content))
    if not response.content:
        return Answer(response.status_code)
    problem = response.json()
    reason = problem["type"].removeprefix(TYPE_BASE)
    return Answer(response.status_code, reason=reason, message=problem["detail"])


def _read_reply(event: CloudEvent) -> Answer:
    """Read a reply as the agent does."""
    if is_acceptance(event.extensions):
        return Answer(200, later=True, event=event)
    result = event.json()
    if event.extensions.get(STATE) == INPUT_REQUIRED:
        return Answer(200, request=InputRequest.from_document(result), event=event)
    error = result.get("error") if isinstance(result, dict) else None
    if isinstance(error, dict) and "reason" in error:
        return Answer(200, reason=error["reason"], message=error["message"], event=event)
    return Answer(200, result, event=event)
