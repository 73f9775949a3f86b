"""The command line's client of a running agent, and the answers stored there."""

import json
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx
from rich.text import Text

from beckon_cli.errors import CommandError
from beckon_cli.output import call_text, compact_json, err, out, print_incomplete

_CONNECT_SECONDS = 10.0
_LONG = httpx.Timeout(
    _CONNECT_SECONDS, read=None
)  # the agent has limits of its own, and keeps the line alive


_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_UNKNOWN_AUTHORITY = range(18, 22)  # X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT and the three after it
_TRUST_CURE = "to trust its authority, set SSL_CERT_FILE to the authority's certificate"
_WITH_CALLS = {"beckon": {"events": True}}  # a chunk for each tool call that begins or ends

Message = Mapping[str, object]


class KeyRefused(CommandError):
    """The agent answered 401: it requires a valid API key."""


class UnknownTool(CommandError):
    """The agent has no tool of this name."""


class AgentClient:
    """A client of the agent at `url`. Failures become `CommandError`, one line each."""

    def __init__(self, url: str, api_key: str = "") -> None:
        self.url = url
        self._api_key = api_key
        headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        self._http = httpx.AsyncClient(base_url=url, timeout=_LONG, headers=headers, verify=_authorities(url))

    async def __aenter__(self) -> "AgentClient":
        """Open the connections."""
        await self._http.__aenter__()
        return self

    async def __aexit__(self, *exception: object) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def list_agents(self) -> list[str]:
        """Return the names of the agents."""
        document = await self._request_json("GET", "/v1/models", "data")
        return [entry["id"] for entry in document["data"]]

    async def get_catalogue(self) -> dict[str, Any]:
        """Return the catalogue: tools, refused, skipped."""
        return await self._request_json("GET", "/tools", "tools")

    async def call_tool(
        self, tool: str, arguments: Mapping[str, object]
    ) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """Call a tool through the Broker, without a model.

        Yields `progress` as often as the tool reports it, and `result` at the end.
        """
        path = f"/tools/{quote(tool, safe='')}"
        accept = {"accept": "application/json, text/event-stream"}
        async with self._open_stream(path, arguments, headers=accept) as response:
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                async for event in _read_events(response):
                    yield event
            else:
                await response.aread()
                yield "result", self._read_document(response, "result")

    async def stream_chat(self, agent: str, messages: Sequence[Message]) -> AsyncIterator[dict[str, Any]]:
        """Yield the chunks of a streamed answer, those of tool calls included."""
        body = {"model": agent, "messages": messages, "stream": True, **_WITH_CALLS}
        async with self._open_stream("/v1/chat/completions", body) as response:
            async for line in _read_lines(response):
                if line == "data: [DONE]":
                    return
                if line.startswith("data: "):
                    chunk = json.loads(line[6:])
                    if "error" in chunk:
                        raise _failure_in(chunk)
                    yield chunk
        raise CommandError(f"the agent at {self.url} went away in the middle of its answer")

    async def create_response(self, request: Mapping[str, object]) -> dict[str, Any]:
        """Return a stored answer of the agent, whole."""
        body = {"include": ["mcp_call"], **request}
        return await self._request_json("POST", "/v1/responses", "output", json=body)

    async def get_response(self, response: str) -> dict[str, Any]:
        """Return a stored answer by its id."""
        path = f"/v1/responses/{quote(response, safe='')}?include[]=mcp_call"
        return await self._request_json("GET", path, "output")

    async def decide_approval(self, approval: str, word: Mapping[str, object]) -> dict[str, Any]:
        """Decide about one waiting call; return its run and decision."""
        path = f"/approvals/{quote(approval, safe='')}"
        return await self._request_json("POST", path, "decision", json=word)

    async def answer_input(self, request: str, answer: Mapping[str, object]) -> dict[str, Any]:
        """Answer the form of a tool; return its run and the action."""
        return await self._request_json("POST", f"/inputs/{quote(request, safe='')}", "action", json=answer)

    async def get_page(self, path: str, **query: object) -> list[dict[str, Any]]:
        """Return one page of a list."""
        params = {name: value for name, value in query.items() if value not in (None, "")}
        document = await self._request_json("GET", path, "data", params=params)
        data: list[dict[str, Any]] = document["data"]
        return data

    async def stream_replay(
        self, run: str, options: Mapping[str, object]
    ) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """Yield the events of a replay with their names: `call`, and `report` at the end."""
        async with self._open_stream(f"/runs/{quote(run, safe='')}/replay", options) as response:
            async for event in _read_events(response):
                yield event

    @asynccontextmanager
    async def _open_stream(
        self, path: str, body: Mapping[str, object], **request: Any
    ) -> AsyncIterator[httpx.Response]:
        """Yield the response to a POST, possibly an event stream.

        It may take long. Raises `CommandError` for any status but 200.
        """
        try:
            async with self._http.stream("POST", path, json=body, **request) as response:
                if response.status_code != 200:
                    await response.aread()
                    raise _failure_of(response)
                yield response
        except httpx.HTTPError as error:
            raise self._no_agent_error(error) from None

    def _no_agent_error(self, error: httpx.HTTPError) -> CommandError:
        if (problem := _certificate_problem(error)) is not None:
            return CommandError(f"the certificate of {self.url} cannot be trusted: {problem}")
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            here = httpx.URL(self.url).host in _LOOPBACK
            cure = "start one: beckon up" if here else "check the URL, and that the network leads there"
            return CommandError(f"no agent answers at {self.url} ({type(error).__name__}); {cure}")
        return CommandError(f"the agent at {self.url} went away: {type(error).__name__}")

    async def _request_json(self, method: str, path: str, member: str, **request: Any) -> dict[str, Any]:
        """Return the JSON object that answers a request; it has this member, if an agent answers."""
        try:
            response = await self._http.request(method, path, **request)
        except httpx.HTTPError as error:
            raise self._no_agent_error(error) from None
        if response.status_code != 200:
            raise _failure_of(response)
        return self._read_document(response, member)

    def _read_document(self, response: httpx.Response, member: str) -> dict[str, Any]:
        """Return the document in a response with status 200.

        Raises `CommandError` for an answer of another server: any may be at a port such as 8080.
        """
        try:
            document: object = response.json()
        except ValueError:
            document = None
        if not isinstance(document, dict) or member not in document:
            request = f"{response.request.method} {response.request.url.path}"
            stranger = f"what answers at {self.url} is no Beckon agent of this version"
            cure = "set BECKON_PORT to the port of the agent"
            raise CommandError(f"{stranger}: its answer to {request} has no {member!r}; {cure}")
        return document


def _authorities(url: str) -> ssl.SSLContext | bool:
    """Return which authorities a client of this URL trusts; True stands for those of the machine.

    None for HTTP: to read all of them is an eighth of the CPU time of a command.
    """
    return httpx.URL(url).scheme == "https" or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


async def is_agent(url: str) -> bool:
    """Return True if a Beckon agent answers at this address."""
    try:
        async with httpx.AsyncClient(timeout=2.0, verify=_authorities(url)) as client:
            response = await client.get(f"{url}/healthz")
            return response.status_code == 200 and response.json().get("service") == "beckon-agent"
    except (httpx.HTTPError, ValueError, AttributeError):
        return False


async def _read_lines(response: httpx.Response) -> AsyncIterator[str]:
    """Yield the lines of a stream.

    Only a line feed ends one. JSON may hold the other line breaks of Unicode, at which httpx would part it.
    """
    rest = b""
    async for chunk in response.aiter_bytes():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.decode().removesuffix("\r")


async def _read_events(response: httpx.Response) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Yield the events of a stream with their names.

    Raises `CommandError` for an event that reports a failure: `problem` or `error`.
    """
    name = ""
    async for line in _read_lines(response):
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            document = json.loads(line[6:])
            if name == "problem":
                raise _failure_in(document)
            if name == "error":
                raise CommandError(str(document.get("detail", document)))
            yield name, document


def _certificate_problem(error: BaseException) -> str | None:
    """Return why a server's certificate was refused, and the cure; `None` if it was not the cause."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    if cause is None:
        return None
    cure = f"; {_TRUST_CURE}" if cause.verify_code in _UNKNOWN_AUTHORITY else ""
    return f"{cause.verify_message.rstrip('.')}{cure}"


def _failure_of(response: httpx.Response) -> CommandError:
    try:
        document = response.json()
    except ValueError:
        document = None
    if not isinstance(document, dict):
        return CommandError(f"the agent answered {response.status_code}: {response.text[:200]}")
    return _failure_in(document, response.status_code)


def _failure_in(document: Mapping[str, Any], status: int = 200) -> CommandError:
    error = document.get("error") or {}
    message = error.get("message") if isinstance(error, dict) else error
    detail = document.get("detail") or message or f"the agent answered {status}"
    problems = document.get("problems") or []
    if status == 401:
        return KeyRefused(f"{detail}; the command line sends the key in BECKON_API_KEY")
    if str(document.get("type", "")).endswith("may-have-effects"):
        detail = f"{str(detail).partition(';')[0]}; --yes calls them all the same"
    if document.get("reason") == "unknown_tool":
        cause, _, cure = str(detail).partition("; ")
        return UnknownTool(f"{cause}; {cure if cure.startswith('did you mean') else 'see: beckon tools'}")
    return CommandError("; ".join([str(detail), *map(str, problems)]))


Item = Mapping[str, Any]

_FORM = "inreq_"


def answer_command(form: str, schema: Mapping[str, Any]) -> str:
    """Return the command that fills in a form."""
    return f"beckon answer {form} {' '.join(f'{name}=…' for name in schema.get('properties', {}))}".rstrip()


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A response of the agent, as `POST /v1/responses` answers it."""

    document: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The id of the response, as the agent gave it."""
        return str(self.document["id"])

    @property
    def text(self) -> str:
        """The model's text in the response."""
        parts = [part for item in self._items_of("message") for part in item["content"]]
        return "".join(part.get("text") or part.get("refusal", "") for part in parts)

    @property
    def incomplete(self) -> bool:
        """True if a limit or the model's server ended the answer early."""
        return bool(self.document["status"] == "incomplete")

    @property
    def questions(self) -> list[Item]:
        """The calls waiting for a person's approval."""
        return [item for item in self._items_of("mcp_approval_request") if not item["id"].startswith(_FORM)]

    @property
    def forms(self) -> list[Item]:
        """The last form of each call, while the response waits. A person has filled in the earlier ones."""
        items = self._items_of("mcp_approval_request") if self.document["status"] == "in_progress" else ()
        latest = {item["id"].partition("~")[0]: item for item in items if item["id"].startswith(_FORM)}
        return list(latest.values())

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls made, as `--json` shows them."""
        return [
            {
                "name": item["name"],
                "arguments": _parse_json(item["arguments"]),
                "failed": item["error"] is not None,
                "result": _parse_json(item["output"]) if item["error"] is None else item["error"],
            }
            for item in self._items_of("mcp_call")
        ]

    def show(self) -> None:
        """Print the answer and the next command.

        The next command is `beckon approve` or `beckon answer` for an answer with waiting calls, else
        `beckon replay`. Raises `CommandError` for an answer that failed.
        """
        for item, call in zip(self._items_of("mcp_call"), self.calls, strict=True):
            out.print(Text(f"→ {call_text(call['name'], call['arguments'])}", style="cyan"))
            if item["status"] != "in_progress":
                style = "red" if call["failed"] else "green"
                out.print(Text(f"← {call['name']}: {compact_json(call['result'])}", style=style))
        if self.text:
            out.print(Text(self.text))
        if self.incomplete:
            print_incomplete()
        self._show_waiting()
        error = self.document.get("error")
        if error:
            raise CommandError(str(error.get("message", error)))

    def _show_waiting(self) -> None:
        for question in self.questions:
            requested = call_text(question["name"], _parse_json(question["arguments"]))
            out.print(Text(f"? {requested}   waits for a person's approval", style="yellow"))
        for form in self.forms:
            shown = _parse_json(form["arguments"])
            out.print(Text(f"? {form['name']}: {shown['message']}", style="yellow"))
            err.print(f"next: {answer_command(form['id'], shown['schema'])}", style="dim")
        if self.questions:
            err.print(f"next: beckon approve {self.id}   (or: beckon approve {self.id} --deny)", style="dim")
        elif not self.forms:
            err.print(f"stored as {self.id}   (again: beckon replay {self.id})", style="dim")

    def _items_of(self, kind: str) -> Iterator[Item]:
        return (item for item in self.document["output"] if item["type"] == kind)


def _parse_json(text: str | None) -> Any:
    """Return parsed JSON; a text without JSON is returned unchanged."""
    try:
        return json.loads(text or "")
    except ValueError:
        return text


def document_of(answer: StoredAnswer) -> dict[str, object]:
    """Return the `--json` document of a stored answer."""
    waiting = [item["name"] for item in (*answer.questions, *answer.forms)]
    return {
        "response": answer.id,
        "answer": answer.text,
        "incomplete": answer.incomplete,
        "calls": answer.calls,
        "waiting": waiting,
    }
