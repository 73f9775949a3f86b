"""Starting or resuming a run from a request body."""

from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import Request

from beckon_agent.api.http.errors import ApiError
from beckon_agent.api.models import find_agent
from beckon_agent.api.responses.approvals import answers_in, decide
from beckon_agent.api.responses.documents import ECHO
from beckon_agent.api.responses.ids import new_run_id, run_and_part, run_of_item
from beckon_agent.api.responses.items import says_something, to_messages
from beckon_agent.api.responses.output import Item
from beckon_agent.api.responses.request import CreateRequest
from beckon_agent.api.responses.stream import ResponseStreamer
from beckon_agent.api.responses.tool_choice import check_tools
from beckon_agent.core.records import FINAL, NewRun, StoredRun
from beckon_agent.durable.base import Ask
from beckon_agent.service import Service

FACE = "responses"
"""What runs of this face are stored under."""

OwnerOf = Callable[[Request], str]
"""Who asks: the principal's id, empty for anonymous."""

_SHOWN = 80
_MAX_RUNS = 100


@dataclass(frozen=True, slots=True)
class ResponseCreator:
    """Turns requests into runs."""

    teller: ResponseStreamer
    service: Service

    async def begin(self, body: CreateRequest, owner: str) -> tuple[StoredRun, int]:
        """Start a run, or resume a waiting one.

        A request with answers to approval requests resumes their run. Returns the run and the number of the
        part that follows. Raises `ApiError`, `NoRoom` and `StoreUnavailable`.
        """
        body.check()
        engine, store = self.teller.engine, self.teller.store
        answers = await answers_in(body.input, engine, store, owner)
        if answers is not None:
            await decide(answers, engine)
            return answers.run, answers.part
        hosted = find_agent(self.service, body.model or self.service.registry.default)
        options = body.options()
        check_tools(options, hosted.catalogue.current.tools)
        previous = await self._previous(body, owner)
        await self._check_conversation(body, owner)
        given = await self._resolved(body.input, owner)
        alone = previous is None and body.conversation_id is None
        messages = to_messages(given, alone=alone)
        if alone and not says_something(messages):
            message = "input: there is nothing to answer; send a text, or a message with the role 'user'"
            raise ApiError(400, message, code="invalid_request", param="input")
        new = NewRun(
            id=new_run_id(),
            owner=owner,
            agent=hosted.name,
            face=FACE,
            input=messages,
            request={ECHO: body.echo()},
            previous=previous,
            conversation=body.conversation_id,
            background=bool(body.background),
            kept=body.is_stored,
        )
        try:
            return await engine.start(Ask(new, hosted, options, options.client_tools)), 1
        except KeyError as error:  # deleted since it was looked for
            raise ApiError(404, f"{error} does not exist any more", code="not_found") from error

    async def find(self, response: str, owner: str, *, param: str = "response_id") -> tuple[StoredRun, int]:
        """Return the run and the part number of a response.

        Raises `ApiError` (404) if this owner has no such response.
        """
        named = run_and_part(response)
        run = await self.teller.engine.get(named[0]) if named else None
        if named is None or run is None or run.owner != owner or run.face != FACE:
            raise no_response(response, param)
        return run, named[1]

    async def _previous(self, body: CreateRequest, owner: str) -> str | None:
        if body.previous_response_id is None:
            return None
        param = "previous_response_id"
        run, _ = await self.find(body.previous_response_id, owner, param=param)
        if run.status == "suspended":
            message = (
                f"{param}: the response waits; answer its mcp_approval_request items with "
                "mcp_approval_response items alone, or wait for its tools"
            )
            raise ApiError(409, message, code="response_waits", param=param)
        if run.status not in FINAL:
            message = f"{param}: the response is still in progress; wait for its end, or cancel it"
            raise ApiError(409, message, code="response_in_progress", param=param)
        return run.id

    async def _check_conversation(self, body: CreateRequest, owner: str) -> None:
        named = body.conversation_id
        if named is None:
            return
        found = await self.teller.store.conversations.find(named)
        if found is None or found.owner != owner:
            message = f"there is no conversation {named[:_SHOWN]!r}"
            raise ApiError(404, message, code="conversation_not_found", param="conversation")

    async def _resolved(self, given: str | list[Item], owner: str) -> str | list[Item]:
        """Return the input with item references replaced by their items."""
        if isinstance(given, str):
            return given
        said: dict[str, dict[str, Item]] = {}
        found: list[Item] = []
        for index, item in enumerate(given):
            place = f"input.{index}.id"
            found.append(await self._referred(item, said, owner, place) if _is_reference(item) else item)
        return found

    async def _referred(
        self, reference: Item, said: dict[str, dict[str, Item]], owner: str, place: str
    ) -> Item:
        """Return the item of a reference.

        `said` caches the items of the runs already read, by run id.
        """
        named = str(reference["id"])
        run_id = run_of_item(named)
        if run_id is not None and run_id not in said:
            if len(said) >= _MAX_RUNS:
                message = f"{place}: items of at most {_MAX_RUNS} responses may be named; send the rest"
                raise ApiError(400, message, code="too_many_references", param=place)
            said[run_id] = await self._said(run_id, owner, place)
        item = said.get(run_id or "", {}).get(named)
        if item is None:
            message = f"{place}: there is no item {named[:_SHOWN]!r}; send the item itself"
            raise ApiError(404, message, code="item_not_found", param=place)
        return item

    async def _said(self, run_id: str, owner: str, place: str) -> dict[str, Item]:
        """Return the items of all parts of a run, by their ids."""
        run, part = await self.find(run_id, owner, param=place)
        items: dict[str, Item] = {}
        while (document := await self.teller.now(run, part)) is not None:
            items |= {item["id"]: dict(item) for item in document["output"]}
            part += 1
        return items


def no_response(response: str, param: str = "response_id") -> ApiError:
    """Return the error for an unknown response (404)."""
    message = f"there is no response {response[:_SHOWN]!r}: it was not stored, or was deleted"
    return ApiError(404, message, code="response_not_found", param=param)


def _is_reference(item: Item) -> bool:
    kind = item.get("type")
    return "id" in item and (kind == "item_reference" or (kind is None and "role" not in item))
