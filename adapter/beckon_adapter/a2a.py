"""Calls of A2A agents (https://a2a-protocol.org): a message, the task that it begins, and the task's result.

The rule, in `beckon.dev/a2a`:

    agent: https://agents.example.com/a2a    # the URL of the agent's JSON-RPC interface
    version: "1.0"                           # or "0.3"
    skill: find-flights                      # goes with the message as `skillId` in its metadata
    timeout: 10m
    credential: flights

A message is sent without waiting, and its task is read until it ends. So no connection is open for long, and
an agent that is away for a moment loses nothing.
"""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal
from urllib.parse import urlsplit

import stamina
from pydantic import BaseModel, ConfigDict, Field, field_validator

from beckon_adapter.caller import raise_failure, read_document
from beckon_adapter.declaration import Call, Run
from beckon_adapter.egress.client import EgressClient, HttpAnswer, Unreachable
from beckon_adapter.egress.outcomes import convert_failures
from beckon_adapter.request import HttpRequest
from beckon_adapter.rule import OwnersName, Seconds, check_fixed_url, parse_named_rule
from beckon_contract.catalogue.annotations import A2A
from beckon_contract.jsontext import dumps
from beckon_tools.answers import Media
from beckon_tools.errors import OutcomeUnknown, Retry, ToolError
from beckon_tools.signature import InvalidArguments

MESSAGE = "message"
PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        MESSAGE: {
            "type": "string",
            "minLength": 1,
            "description": "The request to the agent, in words, with all that it has to know.",
        }
    },
    "required": [MESSAGE],
    "additionalProperties": False,
}
"""The parameters of an EventType with such a rule."""

_REQUEST_SECONDS = 30.0
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0  # seconds between two readings of a task
_READINGS_LOST = 5  # in a row, until the outcome counts as unknown
_METHODS = {"1.0": ("SendMessage", "GetTask"), "0.3": ("message/send", "tasks/get")}
_FAILED = {"failed": "failed", "rejected": "refused the request", "canceled": "cancelled its task"}
_ASKING = {"input-required": "needs an answer", "auth-required": "needs a sign-in"}
_CURE = "; call it again with a message that has all that it needs"


class A2aRule(BaseModel):
    """One rule; `timeout` is in seconds, from the message to the end of its task."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    agent: str
    version: Literal["1.0", "0.3"] = "1.0"
    skill: str = Field("", max_length=200)
    timeout: Seconds = 60.0
    credential: OwnersName | None = None

    @field_validator("agent")
    @classmethod
    def _is_agent(cls, value: str) -> str:
        return check_fixed_url(value, "an agent")


def parse_a2a_rule(text: str) -> A2aRule:
    """Read the annotation's YAML or JSON; raise `InvalidRule`."""
    return parse_named_rule(text, A2aRule, A2A, "agent: https://…")


@dataclass(frozen=True, slots=True)
class A2aCaller:
    """Calls A2A agents through one `EgressClient`."""

    egress: EgressClient

    def prepare_rule(self, text: str, _: Mapping[str, object]) -> Run:
        """Return the function for the calls of one rule; raise `InvalidRule`."""
        rule = parse_a2a_rule(text)

        async def run_call(arguments: Mapping[str, object], call: Call) -> object:
            return await self.call_agent(rule, arguments, call)

        return run_call

    async def call_agent(self, rule: A2aRule, arguments: Mapping[str, object], call: Call) -> object:
        """Return the result of an agent's task.

        Raises `InvalidArguments`, `ToolError`, `OutcomeUnknown`, and `Retry` if the Broker should deliver
        the call again.
        """
        host = urlsplit(rule.agent).hostname or ""
        message = arguments.get(MESSAGE)
        if not isinstance(message, str):
            raise InvalidArguments((f"{MESSAGE}: send the request to the agent, as a text",))
        with convert_failures(host, call, repeatable=call.repeatable):
            try:
                async with asyncio.timeout(rule.timeout):
                    answer = await self._send_message(rule, message, call)
                    return read_result(await self._finish_task(rule, answer, call), host)
            except TimeoutError:
                raise OutcomeUnknown(f"{host} did not end the task within {rule.timeout:g} s") from None

    async def _send_message(self, rule: A2aRule, message: str, call: Call) -> Mapping[str, Any]:
        """Return the task that a message begins, or the message that answers it."""
        modern = rule.version == "1.0"
        part: dict[str, Any] = {"text": message} if modern else {"kind": "text", "text": message}
        sent = {
            # The same at every delivery: an agent may know by it that the call is no new one.
            "messageId": call.key,
            "role": "ROLE_USER" if modern else "user",
            "parts": [part],
            **({} if modern else {"kind": "message"}),
            **({"metadata": {"skillId": rule.skill}} if rule.skill else {}),
        }
        at_once = {"returnImmediately": True} if modern else {"blocking": False}
        params = {"message": sent, "configuration": at_once}
        return await self._request(rule, _METHODS[rule.version][0], params, repeatable=call.repeatable)

    async def _finish_task(self, rule: A2aRule, task_now: Mapping[str, Any], call: Call) -> Mapping[str, Any]:
        """Return a task as it is at its end; report what it says meanwhile."""
        wait, reported, number = _FIRST_WAIT, "", 0
        while (task := as_task(task_now)) is not None and _is_in_progress(task):
            text = " ".join(_texts(_status_parts(task)))
            if call.report is not None and text and text != reported:
                reported, number = text, number + 1
                await call.report(number, None, text)
            await asyncio.sleep(wait)
            wait = min(wait * 1.5, _LONGEST_WAIT)
            task_now = await self._read_task(rule, str(task.get("id")), call)
        return task_now

    async def _read_task(self, rule: A2aRule, task_id: str, call: Call) -> Mapping[str, Any]:
        """Read a task. The readings are repeated: they change nothing."""
        try:
            async for attempt in stamina.retry_context(
                on=(Unreachable, Retry), attempts=_READINGS_LOST, timeout=None, wait_initial=1.0
            ):
                with attempt:
                    params = {"id": task_id}
                    return await self._request(rule, _METHODS[rule.version][1], params, repeatable=True)
        except (Unreachable, Retry) as error:
            message = f"the agent's task {task_id} cannot be read any more: {error}"
            raise (Retry if call.repeatable else OutcomeUnknown)(message) from None
        raise AssertionError("the last attempt raises")

    async def _request(
        self, rule: A2aRule, method: str, params: Mapping[str, object], *, repeatable: bool
    ) -> Mapping[str, Any]:
        """Return the result of one JSON-RPC request."""
        body = dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        headers = (
            ("content-type", "application/json"),
            ("accept", "application/json"),
            ("a2a-version", rule.version),
        )
        request = HttpRequest("POST", rule.agent, headers, body)
        answer = await self.egress.send_request(request, rule.credential, _REQUEST_SECONDS)
        return _read_answer(answer, urlsplit(rule.agent).hostname or "", repeatable=repeatable)


def _read_answer(answer: HttpAnswer, host: str, *, repeatable: bool) -> Mapping[str, Any]:
    document = read_document(answer, host) if answer.body.strip() else None
    match document:
        case {"error": {"code": code, "message": message}}:
            raise ToolError(f"{host} refused the request: {str(message)[:300]} ({code})")
    if answer.status >= 400:
        raise_failure(answer, host, repeatable=repeatable)
    result = document.get("result") if isinstance(document, dict) else None
    if not isinstance(result, dict):
        raise ToolError(f"{host} answered with status {answer.status} and no result of A2A")
    return result


def as_task(result: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the task of a result in either version of the protocol; `None` for a message."""
    task = result.get("task", result)
    return task if isinstance(task, dict) and isinstance(task.get("status"), dict) else None


def _state_of(task: Mapping[str, Any]) -> str:
    """Return the state in the words of version 0.3, such as `input-required`."""
    return str(task["status"].get("state", "")).lower().removeprefix("task_state_").replace("_", "-")


def _is_in_progress(task: Mapping[str, Any]) -> bool:
    return _state_of(task) in ("submitted", "working", "unspecified", "unknown", "")


def _status_parts(task: Mapping[str, Any]) -> list[Any]:
    return _parts_of(task["status"].get("message"))


def _parts_of(holder: object) -> list[Any]:
    parts = holder.get("parts") if isinstance(holder, dict) else None
    return parts if isinstance(parts, list) else []


def read_result(answer: Mapping[str, Any], host: str) -> object:
    """Return the result of a task that has ended, or of a message.

    It is the content of the task's artifacts, without any that of its last message: a text, or the data, or
    a list of both. Raises `ToolError` for a task that failed, was refused, or needs an answer.
    """
    task = as_task(answer)
    if task is None:
        return _join_parts(_parts_of(answer.get("message", answer)))
    state, detail = _state_of(task), " ".join(_texts(_status_parts(task)))[:2_000]
    if state in _FAILED:
        raise ToolError(f"the agent at {host} {_FAILED[state]}{f': {detail}' if detail else ''}")
    if state in _ASKING:
        raise ToolError(f"the agent at {host} {_ASKING[state]}{f': {detail}' if detail else ''}{_CURE}")
    artifacts = task.get("artifacts")
    parts = list(chain.from_iterable(map(_parts_of, artifacts if isinstance(artifacts, list) else ())))
    return _join_parts(parts or _status_parts(task))


def _texts(parts: list[Any]) -> Iterator[str]:
    return (part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


def _join_parts(parts: list[Any]) -> object:
    """Return one value for parts; texts that follow each other are one text."""
    values: list[object] = []
    for part in filter(lambda each: isinstance(each, dict), parts):
        value = _value_of(part)
        if isinstance(value, str) and values and isinstance(values[-1], str):
            values[-1] += value
        else:
            values.append(value)
    return values[0] if len(values) == 1 else values


def _value_of(part: Mapping[str, Any]) -> object:
    if isinstance(part.get("text"), str):
        return part["text"]
    file = found if isinstance(found := part.get("file"), dict) else part
    data = file.get("raw") or file.get("bytes")
    if isinstance(data, str):
        kind = str(file.get("mediaType") or file.get("mimeType") or "application/octet-stream")
        try:
            return Media.from_base64(kind, data).to_document()
        except ValueError:
            raise ToolError("the agent sent what is no base64") from None
    return part.get("data") if "data" in part else {name: file[name] for name in file if name != "kind"}
