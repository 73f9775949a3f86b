"""`GET /catalogue`: every EventType with its conditions and its route, callable or not."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from beckon_agent.api.http.errors import ProblemError, problem_responses
from beckon_agent.api.http.openapi import INTEGER, YES_OR_NO, answer, leads_to, listed, maybe, obj, word
from beckon_agent.api.responses.answers import as_json
from beckon_agent.api.tools import AgentName, chosen_agent, tool_document
from beckon_agent.service import Service
from beckon_agent.tools.explain import Explanation
from beckon_contract.catalogue import Catalogue
from beckon_contract.problem import Problem
from beckon_contract.tools import Refusal, Skipped, Tool

State = Literal["ready", "refused", "skipped"]
Found = Tool | Refusal | Skipped

_CONDITION = obj(type=word(), status=word("True", "False", "Unknown"), reason=word(), message=word())
_ENTRY: dict[str, Any] = {
    "id": word(),
    "name": word(),
    "namespace": word(),
    "event_type": word(),
    "type": word(),
    "description": word(),
    "state": word("ready", "refused", "skipped"),
    "conditions": listed(_CONDITION),
}
_STATION = obj(
    kind=word("EventType", "Broker", "Trigger", "Service", "Reply"),
    name=word(),
    state=word("ok", "broken", "unknown"),
    detail=word(),
    note=word(),
)
_ERRORS = {"_503": "The agent cannot take requests now.", "default": "Any other error, in the same shape."}
_LIST = {
    **answer(
        "EventTypes, and how many of each state there are that the words find.",
        obj(
            object=word("list"),
            data=listed(obj(**_ENTRY)),
            first_id=word(),
            last_id=word(),
            has_more=YES_OR_NO,
            counts=obj(ready=INTEGER, refused=INTEGER, skipped=INTEGER),
        ),
        entry=leads_to(
            "explainEventType",
            namespace="$response.body#/data/0/namespace",
            event_type="$response.body#/data/0/event_type",
        ),
    ),
    **problem_responses(_400="A value cannot be read.", _404="There is no agent of this name.", **_ERRORS),
}
_ONE = {
    **answer(
        "The EventType; `tool` is what a model sees of it.",
        obj(
            **_ENTRY,
            route=listed(_STATION),
            findings=listed({"type": "object"}),
            tool=maybe({"type": "object"}),
        ),
    ),
    **problem_responses(_404="There is no such EventType, or no such agent.", **_ERRORS),
}

Words = Annotated[
    str, Query(alias="query", max_length=200, description="Words that name, type or description have.")
]
Limit = Annotated[int, Query(ge=1, le=100, description="How many are wanted at most.")]
After = Annotated[
    str | None, Query(max_length=600, description="The list goes on behind the one of this id: `last_id`.")
]
Wanted = Annotated[State | None, Query(description="Only EventTypes of this state.")]


@dataclass(frozen=True, slots=True)
class _Row:
    """An EventType of a catalogue, with its state.

    `id` sorts the list: a list continues correctly after the id of a deleted row.
    """

    state: State
    found: Found

    @property
    def id(self) -> str:
        """Namespace and name, or the manifest's place if it is unreadable."""
        return f"{self.found.namespace}/{self.found.event_type or self.found.origin}"

    @property
    def text(self) -> str:
        """The text searched by queries."""
        found = self.found
        said = (found.name, found.type, found.description) if isinstance(found, Tool) else (found.message,)
        return " ".join((found.namespace, found.event_type, found.origin, *said)).casefold()


def router(service: Service) -> APIRouter:
    """Return the routes of the catalogue."""
    routes = APIRouter()

    @routes.get("/catalogue", operation_id="listEventTypes", response_model=None, responses=_LIST)
    async def list_event_types(  # each is a parameter of the query
        *,
        wanted: Words = "",
        state: Wanted = None,
        limit: Limit = 50,
        after: After = None,
        agent: AgentName = None,
    ) -> Response:
        """List EventTypes with their conditions: tools, and what is none with the reason."""
        source = chosen_agent(service, agent).catalogue
        rows = _rows(source.current, wanted)
        counts = {name: sum(row.state == name for row in rows) for name in ("ready", "refused", "skipped")}
        chosen = [row for row in rows if state is None or row.state == state]
        first = 0 if after is None else bisect_right(chosen, after, key=lambda row: row.id)
        shown = chosen[first : first + limit]
        data = [_entry(row, source.explain(row.found.namespace, row.found.event_type)) for row in shown]
        return as_json(
            {
                "object": "list",
                "data": data,
                "first_id": shown[0].id if shown else "",
                "last_id": shown[-1].id if shown else "",
                "has_more": first + limit < len(chosen),
                "counts": counts,
            }
        )

    @routes.get(
        "/catalogue/{namespace}/{event_type}",
        operation_id="explainEventType",
        response_model=None,
        responses=_ONE,
    )
    async def explain(namespace: str, event_type: str, agent: AgentName = None) -> Response:
        """Return an EventType with its conditions, the way of its calls, and what a model sees of it."""
        source = chosen_agent(service, agent).catalogue
        wanted = (namespace, event_type)
        for row in _rows(source.current, ""):
            if (row.found.namespace, row.found.event_type) == wanted:
                return as_json(_whole(row, source.explain(*wanted)))
        detail = f"there is no EventType {event_type[:80]!r} in namespace {namespace[:80]!r}"
        raise ProblemError(Problem(404, "unknown-event-type", "Unknown EventType", detail))

    return routes


def _rows(catalogue: Catalogue, query: str) -> list[_Row]:
    """Return the rows with all words of a query, by id."""
    every: list[_Row] = [
        *_of("ready", catalogue.tools.values()),
        *_of("refused", catalogue.refusals),
        *_of("skipped", catalogue.skipped),
    ]
    words = query.casefold().split()
    found = every if not words else [row for row in every if all(word in row.text for word in words)]
    return sorted(found, key=lambda row: row.id)


def _of(state: State, found: Iterable[Found]) -> list[_Row]:
    return [_Row(state, one) for one in found]


def _entry(row: _Row, known: Explanation | None) -> dict[str, Any]:
    found = row.found
    return {
        "id": row.id,
        "name": found.name if isinstance(found, Tool) else found.event_type or found.origin,
        "namespace": found.namespace,
        "event_type": found.event_type,
        "type": known.type if known else "",
        "description": known.description if known else "",
        "state": row.state,
        "conditions": [asdict(condition) for condition in known.conditions] if known else _bare(found),
    }


def _whole(row: _Row, known: Explanation | None) -> dict[str, Any]:
    tool = row.found if isinstance(row.found, Tool) else None
    return {
        **_entry(row, known),
        "origin": row.found.origin,
        "route": [asdict(station) for station in known.route] if known else [],
        "findings": [asdict(finding) for finding in known.findings] if known else [],
        "tool": tool_document(tool) if tool else None,
    }


def _bare(found: Found) -> list[Mapping[str, str]]:
    """Return the only condition of an EventType without an explanation.

    An example is a document that is no object.
    """
    if isinstance(found, Tool):
        return [{"type": "Ready", "status": "True", "reason": "Ready", "message": ""}]
    return [{"type": "Ready", "status": "False", "reason": found.reason, "message": found.message}]
