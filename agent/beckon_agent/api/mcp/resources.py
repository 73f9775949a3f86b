"""Stored runs as resources: `resources/list`, `resources/read` and `resources/templates/list`.

A client reads the caller's runs of the agent, from every API: a document of each with its steps, and the
files that tools returned.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from beckon_agent.api.mcp import notifications
from beckon_agent.api.mcp.results import media_of
from beckon_agent.api.runs.documents import run_document
from beckon_agent.core.context import current_principal
from beckon_agent.core.records import Past, RunFilter, RunSummary, StoredRun
from beckon_agent.store.base import Store
from beckon_contract.jsontext import dumps

_RUNS = "beckon://runs/"
_FILES = "/files/"
_JSON = "application/json"
_PAGE = 100  # runs
_SHOWN = 80  # characters
_EARLIER_NOT_FOUND = -32002  # before 2026-07-28 (SEP-2164)

Context = ServerRequestContext[Any, Any]


@dataclass(frozen=True, slots=True)
class RunFile:
    """A file that a tool returned. `name` is unique in its run."""

    name: str
    media_type: str
    data_base64: str


@dataclass(frozen=True, slots=True)
class RunResources:
    """The methods for the stored runs of the current principal."""

    store: Store

    def add_to(self, server: Server[Any]) -> None:
        """Serve the methods."""
        server.add_request_handler("resources/list", types.PaginatedRequestParams, self._list_runs)
        server.add_request_handler("resources/read", types.ReadResourceRequestParams, self._read_resource)
        server.add_request_handler("resources/templates/list", types.PaginatedRequestParams, _list_templates)

    async def _list_runs(self, _: Context, params: types.PaginatedRequestParams) -> HandlerResult:
        wanted = RunFilter(agent=notifications.current.get().hosted.name)
        owner = current_principal().id
        try:
            runs = await self.store.history.list_runs(owner, wanted, after=params.cursor, most=_PAGE + 1)
        except KeyError:
            message = "the cursor is none of this server's; leave it out to begin with the newest run"
            raise MCPError(types.INVALID_PARAMS, message) from None
        page = {"resources": [_describe_run(one) for one in runs[:_PAGE]], "resultType": "complete"}
        return {**page, "nextCursor": runs[_PAGE - 1].run.id} if len(runs) > _PAGE else page

    async def _read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> HandlerResult:
        uri = str(params.uri)
        run_id, _, name = uri.removeprefix(_RUNS).partition(_FILES)
        run = await self._find_run(run_id) if uri.startswith(_RUNS) else None
        if run is None:
            raise _not_found(context, uri)
        past = await self.store.runs.load_past(run.id)
        contents = [_file_content(run, file) for file in _find_files(past) if name in ("", file.name)]
        if not name:
            text = dumps(run_document(run, past)).decode()
            contents.insert(0, {"uri": uri, "mimeType": _JSON, "text": text})
        if not contents:
            raise _not_found(context, uri)
        return {"contents": contents, "resultType": "complete"}

    async def _find_run(self, run_id: str) -> StoredRun | None:
        """Return a run of the current principal and the requested agent, as the list has it."""
        run = await self.store.runs.get(run_id)
        hosted = notifications.current.get().hosted
        if run is None or not run.retained:
            return None
        return run if (run.owner, run.agent) == (current_principal().id, hosted.name) else None


async def _list_templates(_: Context, __: types.PaginatedRequestParams) -> HandlerResult:
    templates = [
        {
            "uriTemplate": f"{_RUNS}{{run}}",
            "name": "run",
            "description": "A run of yours with its steps, and the files that its tools returned.",
            "mimeType": _JSON,
        },
        {
            "uriTemplate": f"{_RUNS}{{run}}{_FILES}{{file}}",
            "name": "file",
            "description": "A file that a tool returned.",
        },
    ]
    return {"resourceTemplates": templates, "resultType": "complete"}


def _describe_run(summary: RunSummary) -> dict[str, object]:
    run = summary.run
    return {
        "uri": f"{_RUNS}{run.id}",
        "name": run.id,
        "title": summary.question or run.id,
        "description": f"A run that is {run.status}.",
        "mimeType": _JSON,
    }


def _find_files(past: Past) -> Iterator[RunFile]:
    """Yield the files in the results of a run, in the order of its calls."""
    for call in past.calls:
        for number, media in enumerate(media_of(call.result), start=1):
            yield RunFile(f"{call.event_id}.{number}", media["media_type"], media["data_base64"])


def _file_content(run: StoredRun, file: RunFile) -> dict[str, object]:
    uri = f"{_RUNS}{run.id}{_FILES}{file.name}"
    return {"uri": uri, "mimeType": file.media_type, "blob": file.data_base64}


def _not_found(context: Context, uri: str) -> MCPError:
    modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
    code = types.INVALID_PARAMS if modern else _EARLIER_NOT_FOUND
    message = f"there is no resource {uri[:_SHOWN]!r}: it never was, was deleted, or is of another caller"
    return MCPError(code, message, {"uri": uri[:2_000]})
