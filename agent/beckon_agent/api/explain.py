"""`GET /catalogue`: every EventType with its conditions and its route, callable or not."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from typing_extensions import TypedDict

from beckon_agent.api.http.errors import problem_responses
from beckon_agent.api.http.openapi import (
    JsonResponse,
    PageFields,
    describe_answer,
    describe_operation,
    link_to,
)
from beckon_agent.api.tools import AgentName, ToolDocument, chosen_agent, tool_document
from beckon_agent.service import Service
from beckon_agent.tools.explain import Explanation, Station
from beckon_contract.catalogue.builder import Catalogue
from beckon_contract.catalogue.diagnostics import Finding
from beckon_contract.kubernetes_objects import Condition
from beckon_contract.resources.tools import Refusal, Skipped, Tool
from beckon_runtime.problem import Problem, ProblemError

State = Literal["ready", "refused", "skipped"]
EventTypeResult = Tool | Refusal | Skipped


class CatalogueEntry(TypedDict):
    """An EventType with its conditions."""

    id: str
    name: str
    namespace: str
    event_type: str
    type: str
    description: str
    state: State
    conditions: Sequence[Condition]


class ExplainedEventType(CatalogueEntry):
    """An EventType with the route of its calls; `tool` is what a model sees of it."""

    origin: str
    route: Sequence[Station]
    findings: Sequence[Finding]
    tool: ToolDocument | None


class StateCounts(TypedDict):
    """The number of EventTypes in each state."""

    ready: int
    refused: int
    skipped: int


class CataloguePage(PageFields):
    """EventTypes, and how many of each state there are that the words find."""

    data: list[CatalogueEntry]
    counts: StateCounts


_ERRORS = {"_503": "The agent cannot take requests now.", "default": "Any other error, in the same shape."}
_LIST = {
    **describe_answer(
        "EventTypes, and how many of each state there are that the words find.",
        entry=link_to(
            "explainEventType",
            namespace="$response.body#/data/0/namespace",
            event_type="$response.body#/data/0/event_type",
        ),
    ),
    **problem_responses(_400="A value cannot be read.", _404="There is no agent of this name.", **_ERRORS),
}
_ONE = {
    **describe_answer("The EventType; `tool` is what a model sees of it."),
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
    result: EventTypeResult

    @property
    def id(self) -> str:
        """Namespace and name, or the manifest's place if it is unreadable."""
        return f"{self.result.namespace}/{self.result.event_type or self.result.origin}"

    @property
    def search_text(self) -> str:
        """The text searched by queries."""
        result = self.result
        words = (
            (result.name, result.type, result.description) if isinstance(result, Tool) else (result.message,)
        )
        return " ".join((result.namespace, result.event_type, result.origin, *words)).casefold()


def make_router(service: Service) -> APIRouter:
    """Return the routes of the catalogue."""
    routes = APIRouter()

    @routes.get("/catalogue", **describe_operation("listEventTypes", _LIST))
    async def list_event_types(  # each is a parameter of the query
        *,
        wanted: Words = "",
        state: Wanted = None,
        limit: Limit = 50,
        after: After = None,
        agent: AgentName = None,
    ) -> JsonResponse[CataloguePage]:
        """List EventTypes with their conditions: tools, and what is none with the reason."""
        source = chosen_agent(service, agent).catalogue
        rows = _find_rows(source.current, wanted)
        states = [row.state for row in rows]
        chosen = [row for row in rows if state is None or row.state == state]
        first = 0 if after is None else bisect_right(chosen, after, key=lambda row: row.id)
        shown = chosen[first : first + limit]
        data = [_to_entry(row, source.explain(row.result.namespace, row.result.event_type)) for row in shown]
        return JsonResponse(
            {
                "object": "list",
                "data": data,
                "first_id": shown[0].id if shown else "",
                "last_id": shown[-1].id if shown else "",
                "has_more": first + limit < len(chosen),
                "counts": {
                    "ready": states.count("ready"),
                    "refused": states.count("refused"),
                    "skipped": states.count("skipped"),
                },
            }
        )

    @routes.get("/catalogue/{namespace}/{event_type}", **describe_operation("explainEventType", _ONE))
    async def explain_event_type(
        namespace: str, event_type: str, agent: AgentName = None
    ) -> JsonResponse[ExplainedEventType]:
        """Return an EventType with its conditions, the route of its calls, and what a model sees of it."""
        source = chosen_agent(service, agent).catalogue
        wanted = (namespace, event_type)
        for row in _find_rows(source.current, ""):
            if (row.result.namespace, row.result.event_type) == wanted:
                return JsonResponse(_to_explained(row, source.explain(*wanted)))
        detail = f"there is no EventType {event_type[:80]!r} in namespace {namespace[:80]!r}"
        raise ProblemError(Problem(404, "unknown-event-type", "Unknown EventType", detail))

    return routes


def _find_rows(catalogue: Catalogue, query: str) -> list[_Row]:
    """Return the rows with all words of a query, by id."""
    every: list[_Row] = [
        *_rows_of("ready", catalogue.tools.values()),
        *_rows_of("refused", catalogue.refusals),
        *_rows_of("skipped", catalogue.skipped),
    ]
    words = query.casefold().split()
    matching = (
        every if not words else [row for row in every if all(word in row.search_text for word in words)]
    )
    return sorted(matching, key=lambda row: row.id)


def _rows_of(state: State, results: Iterable[EventTypeResult]) -> list[_Row]:
    return [_Row(state, one) for one in results]


def _to_entry(row: _Row, known: Explanation | None) -> CatalogueEntry:
    result = row.result
    return {
        "id": row.id,
        "name": result.name if isinstance(result, Tool) else result.event_type or result.origin,
        "namespace": result.namespace,
        "event_type": result.event_type,
        "type": known.type if known else "",
        "description": known.description if known else "",
        "state": row.state,
        "conditions": known.conditions if known else [_bare_condition(result)],
    }


def _to_explained(row: _Row, known: Explanation | None) -> ExplainedEventType:
    tool = row.result if isinstance(row.result, Tool) else None
    return {
        **_to_entry(row, known),
        "origin": row.result.origin,
        "route": known.route if known else [],
        "findings": known.findings if known else [],
        "tool": tool_document(tool) if tool else None,
    }


def _bare_condition(result: EventTypeResult) -> Condition:
    """Return the only condition of an EventType without an explanation.

    An example is a document that is no object.
    """
    if isinstance(result, Tool):
        return Condition("Ready", "True", "Ready")
    return Condition("Ready", "False", result.reason, result.message)
