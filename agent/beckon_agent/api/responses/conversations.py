"""The routes under `/v1/conversations`.

A conversation is a thread of items. It outlives the responses that add to it.
"""

import secrets
import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import Field
from typing_extensions import TypedDict

from beckon_agent.api.http.errors import ApiError, api_errors, openai_responses
from beckon_agent.api.http.openapi import JsonResponse, ListPage, describe_answer, describe_operation, link_to
from beckon_agent.api.request_fields import Metadata
from beckon_agent.api.responses.documents import ItemsPerPage, list_page
from beckon_agent.api.responses.item_removal import remove_item
from beckon_agent.api.responses.items import InputItem, to_messages
from beckon_agent.api.responses.output import ConversationItem, ItemPage, Order, item_page, to_items
from beckon_agent.api.responses.request import Cleaned
from beckon_agent.core.context import owner_of
from beckon_agent.core.records import ConversationSummary, Ended, NewRun, StoredConversation
from beckon_agent.store.base import Store

_ERRORS = openai_responses(
    _400="The request is not valid.",
    _404="There is no such conversation or item, or it is not the caller's.",
    _503="The store does not answer; Retry-After says when to retry.",
    default="Any other error, in the same shape.",
)
_LIST_ERRORS = openai_responses(
    _400="The request is not valid, or `after` names no conversation of the caller's.",
    _503="The store does not answer; Retry-After says when to retry.",
    default="Any other error, in the same shape.",
)
_LIST = describe_answer(
    "One page of the list.",
    retrieve=link_to("retrieveConversation", conversation_id="$response.body#/data/0/id"),
)
_THIS = {"conversation_id": "$response.body#/id"}
_OPENED = describe_answer(
    "The conversation.",
    retrieve=link_to("retrieveConversation", **_THIS),
    update=link_to("updateConversation", **_THIS),
    delete=link_to("deleteConversation", **_THIS),
    add=link_to("createItems", **_THIS),
    items=link_to("listItems", **_THIS),
)
_CONVERSATION = describe_answer("The conversation.")
_CLOSED = describe_answer("It is deleted.")
_ADDED = describe_answer(
    "The items that were added.",
    item=link_to(
        "retrieveItem",
        item_id="$response.body#/data/0/id",
        conversation_id="$request.path.conversation_id",
    ),
)
_PAGE = describe_answer("One page of the list.")
_FOUND = describe_answer("The item.")
_FACE = "conversations"
_HOLD_SECONDS = 10.0
_SHOWN = 80
_MAX_ITEMS = 20  # OpenAI's limit for one request

Items = Annotated[list[InputItem], Field(max_length=_MAX_ITEMS)]
Words = Annotated[
    str, Query(alias="query", max_length=200, description="Only conversations with this text in a message.")
]
After = Annotated[
    str | None,
    Query(
        max_length=140,
        description="The list goes on behind this one: an id, or `last_id`, which says where it stood.",
    ),
]


class ConversationDocument(TypedDict):
    """A conversation, without its items."""

    id: str
    object: Literal["conversation"]
    created_at: int
    metadata: dict[str, str]


class ListedConversation(ConversationDocument):
    """A conversation in a list, with its first question as title."""

    used_at: int
    title: str


class DeletedConversation(TypedDict):
    """The answer to the deletion of a conversation."""

    id: str
    object: Literal["conversation.deleted"]
    deleted: bool


class CreateConversation(Cleaned):
    """The body of `POST /v1/conversations`."""

    items: Items | None = None
    metadata: Metadata | None = None


class UpdateConversation(Cleaned):
    """The body of `POST /v1/conversations/{id}`."""

    metadata: Metadata | None


class CreateItems(Cleaned):
    """The body of `POST /v1/conversations/{id}/items`."""

    items: Items


_One = JsonResponse[ConversationDocument]
_Items = JsonResponse[ItemPage]


def make_router(store: Store) -> APIRouter:
    """Return the routes of conversations."""
    routes = APIRouter()
    _add_list(routes, store)
    _add_conversations(routes, store)
    _add_items(routes, store)
    _add_removal(routes, store)
    return routes


def _add_list(routes: APIRouter, store: Store) -> None:
    @routes.get("/v1/conversations", **describe_operation("listConversations", _LIST, _LIST_ERRORS))
    async def list_conversations(
        request: Request, wanted: Words = "", limit: ItemsPerPage = 20, after: After = None
    ) -> JsonResponse[ListPage[ListedConversation]]:
        """List the caller's conversations, the last used first, each with its first question as title."""
        with api_errors():
            try:
                conversations = await store.history.list_conversations(
                    owner_of(request), query=wanted.strip(), after=after, most=limit + 1
                )
            except KeyError:
                message = f"after: there is no conversation {(after or '')[:_SHOWN]!r}"
                raise ApiError(400, message, code="invalid_request", param="after") from None
        page = list_page(conversations, limit, _to_listed)
        # A conversation that is used between two requests would take the page's end with it.
        page["last_id"] = conversations[len(page["data"]) - 1].place if page["data"] else ""
        return JsonResponse(page)


def _add_conversations(routes: APIRouter, store: Store) -> None:
    path = "/v1/conversations/{conversation_id}"

    @routes.post("/v1/conversations", **describe_operation("createConversation", _OPENED, _ERRORS))
    async def create_conversation(request: Request, body: CreateConversation | None = None) -> _One:
        """Open a conversation, with its first items if there are any."""
        with api_errors():
            options = body or CreateConversation()
            conversation = StoredConversation(
                id=f"conv_{secrets.token_hex(16)}",
                owner=owner_of(request),
                metadata=options.metadata or {},
                created_at=time.time(),
            )
            await store.conversations.open(conversation, to_messages(options.items or [], alone=True))
            return JsonResponse(_to_document(conversation))

    @routes.get(path, **describe_operation("retrieveConversation", _CONVERSATION, _ERRORS))
    async def retrieve_conversation(conversation_id: str, request: Request) -> _One:
        """Return a conversation, without its items."""
        with api_errors():
            return JsonResponse(
                _to_document(await _find_conversation(store, conversation_id, owner_of(request)))
            )

    @routes.post(path, **describe_operation("updateConversation", _CONVERSATION, _ERRORS))
    async def update_conversation(conversation_id: str, body: UpdateConversation, request: Request) -> _One:
        """Replace the metadata of a conversation."""
        with api_errors():
            conversation = await _find_conversation(store, conversation_id, owner_of(request))
            document = _to_document(conversation)
            document["metadata"] = body.metadata or {}
            if not await store.conversations.update(conversation.id, document["metadata"]):
                raise _no_conversation(conversation_id)
            return JsonResponse(document)

    @routes.delete(path, **describe_operation("deleteConversation", _CLOSED, _ERRORS))
    async def delete_conversation(
        conversation_id: str, request: Request
    ) -> JsonResponse[DeletedConversation]:
        """Delete a conversation; the responses that belonged to it stay."""
        with api_errors():
            conversation = await _find_conversation(store, conversation_id, owner_of(request))
            if not await store.conversations.close(conversation.id):
                raise _no_conversation(conversation_id)
            return JsonResponse({"id": conversation.id, "object": "conversation.deleted", "deleted": True})


def _add_items(routes: APIRouter, store: Store) -> None:
    path = "/v1/conversations/{conversation_id}/items"

    @routes.post(path, **describe_operation("createItems", _ADDED, _ERRORS))
    async def create_items(conversation_id: str, body: CreateItems, request: Request) -> _Items:
        """Add items to a conversation; return them with their ids."""
        with api_errors():
            owner = owner_of(request)
            conversation = await _find_conversation(store, conversation_id, owner)
            before = len(await _read_items(store, conversation))
            await _add_messages(store, conversation, to_messages(body.items, alone=False))
            added = (await _read_items(store, conversation))[before:]
            return JsonResponse(item_page(added, after=None, limit=max(1, len(added)), order="asc"))

    @routes.get(path, **describe_operation("listItems", _PAGE, _ERRORS))
    async def list_items(
        conversation_id: str,
        request: Request,
        limit: ItemsPerPage = 20,
        order: Order = "desc",
        after: str | None = None,
    ) -> _Items:
        """List the items of a conversation, page by page."""
        with api_errors():
            conversation = await _find_conversation(store, conversation_id, owner_of(request))
            return JsonResponse(
                item_page(await _read_items(store, conversation), after=after, limit=limit, order=order)
            )

    @routes.get(f"{path}/{{item_id}}", **describe_operation("retrieveItem", _FOUND, _ERRORS))
    async def retrieve_item(
        conversation_id: str, item_id: str, request: Request
    ) -> JsonResponse[ConversationItem]:
        """Return one item of a conversation."""
        with api_errors():
            conversation = await _find_conversation(store, conversation_id, owner_of(request))
            for item in await _read_items(store, conversation):
                if item["id"] == item_id:
                    return JsonResponse(item)
            raise _no_item(item_id)


def _add_removal(routes: APIRouter, store: Store) -> None:
    path = "/v1/conversations/{conversation_id}/items/{item_id}"

    @routes.delete(path, **describe_operation("deleteItem", _CONVERSATION, _ERRORS))
    async def delete_item(conversation_id: str, item_id: str, request: Request) -> _One:
        """Delete one item of a conversation. The responses that have read it stay as they are."""
        with api_errors():
            conversation = await _find_conversation(store, conversation_id, owner_of(request))
            if not await store.conversations.rewrite(
                conversation.id, lambda messages: remove_item(messages, conversation.id, item_id)
            ):
                raise _no_item(item_id)
            return JsonResponse(_to_document(conversation))


async def _find_conversation(store: Store, conversation_id: str, owner: str) -> StoredConversation:
    conversation = await store.conversations.find(conversation_id)
    if conversation is None or conversation.owner != owner:
        raise _no_conversation(conversation_id)
    return conversation


async def _read_items(store: Store, conversation: StoredConversation) -> list[ConversationItem]:
    return to_items(await store.conversations.read(conversation.id), conversation.id)


async def _add_messages(
    store: Store, conversation: StoredConversation, messages: list[dict[str, Any]]
) -> None:
    """Add messages to a conversation as a run without work.

    A run adds all its messages or none, and in order.
    """
    new = NewRun(
        id=f"add_{secrets.token_hex(16)}",
        owner=conversation.owner,
        agent="",
        face=_FACE,
        input=messages,
        conversation=conversation.id,
    )
    try:
        await store.runs.create(new, holder=new.id, seconds=_HOLD_SECONDS)
    except KeyError as error:
        raise _no_conversation(conversation.id) from error
    await store.runs.end_run(new.id, new.id, Ended("completed", "stop", added=()))


def _no_conversation(conversation_id: str) -> ApiError:
    message = f"there is no conversation {conversation_id[:_SHOWN]!r}"
    return ApiError(404, message, code="conversation_not_found", param="conversation_id")


def _no_item(item_id: str) -> ApiError:
    message = f"there is no item {item_id[:_SHOWN]!r} in this conversation"
    return ApiError(404, message, code="item_not_found", param="item_id")


def _to_document(conversation: StoredConversation) -> ConversationDocument:
    return {
        "id": conversation.id,
        "object": "conversation",
        "created_at": int(conversation.created_at),
        "metadata": dict(conversation.metadata),
    }


def _to_listed(summary: ConversationSummary) -> ListedConversation:
    return {**_to_document(summary.conversation), "used_at": int(summary.used_at), "title": summary.title}
