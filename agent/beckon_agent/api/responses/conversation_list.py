"""`GET /v1/conversations`: the caller's conversations, and a search in them."""

from typing import Annotated

from fastapi import APIRouter, Query, Request

from beckon_agent.api.http.errors import ApiError, api_errors, openai_responses
from beckon_agent.api.http.openapi import JsonResponse, ListPage, answer, leads_to, operation
from beckon_agent.api.responses.conversations import ConversationDocument
from beckon_agent.api.responses.create import OwnerOf
from beckon_agent.api.responses.lookup import ItemsPerPage, listed
from beckon_agent.core.records import ConversationSummary
from beckon_agent.store.base import Store

_ERRORS = openai_responses(
    _400="The request is not valid, or `after` names no conversation of the caller's.",
    _503="The store does not answer; Retry-After says when to ask again.",
    default="Any other error, in the same shape.",
)
_LIST = answer(
    "One page of the list.",
    retrieve=leads_to("retrieveConversation", conversation_id="$response.body#/data/0/id"),
)
_SHOWN = 80

Words = Annotated[
    str, Query(alias="query", max_length=200, description="Only those in which somebody said this.")
]
After = Annotated[
    str | None,
    Query(
        max_length=140,
        description="The list goes on behind this one: an id, or `last_id`, which says where it stood.",
    ),
]


class ListedConversation(ConversationDocument):
    """A conversation in a list, with its first question as title."""

    used_at: int
    title: str


def router(store: Store, owner_of: OwnerOf) -> APIRouter:
    """Return the route; `owner_of` returns the principal's id."""
    routes = APIRouter()

    @routes.get("/v1/conversations", **operation("listConversations", _LIST, _ERRORS))
    async def list_conversations(
        request: Request, wanted: Words = "", limit: ItemsPerPage = 20, after: After = None
    ) -> JsonResponse[ListPage[ListedConversation]]:
        """List the caller's conversations, the last used first, each with its first question as title."""
        with api_errors():
            try:
                found = await store.history.list_conversations(
                    owner_of(request), query=wanted.strip(), after=after, most=limit + 1
                )
            except KeyError:
                message = f"after: there is no conversation {(after or '')[:_SHOWN]!r}"
                raise ApiError(400, message, code="invalid_request", param="after") from None
        page = listed(found, limit, _document)
        # A conversation that is used while somebody turns pages would take the page's end with it.
        page["last_id"] = found[len(page["data"]) - 1].place if page["data"] else ""
        return JsonResponse(page)

    return routes


def _document(summary: ConversationSummary) -> ListedConversation:
    conversation = summary.conversation
    return {
        "id": conversation.id,
        "object": "conversation",
        "created_at": int(conversation.created_at),
        "used_at": int(summary.used_at),
        "metadata": dict(conversation.metadata),
        "title": summary.title,
    }
