"""The answers in the OpenAPI description, with their documents' members."""

from typing import Any

from beckon_agent.api.http.openapi import INTEGER, YES_OR_NO, answer, leads_to, listed, maybe, obj, word

_SAID = obj(type=word(), id=word())
_OBJECT: dict[str, Any] = {"type": "object"}
_RESPONSE = obj(
    id=word(),
    object=word("response"),
    created_at=INTEGER,
    status=word("queued", "in_progress", "completed", "incomplete", "failed", "cancelled"),
    model=word(),
    output=listed(_SAID),
    usage=maybe(obj(input_tokens=INTEGER, output_tokens=INTEGER, total_tokens=INTEGER)),
    error=maybe(obj(code=word(), message=word())),
    incomplete_details=maybe(obj(reason=word())),
    metadata=_OBJECT,
    background=YES_OR_NO,
    store=YES_OR_NO,
    conversation=maybe(obj(id=word())),
    previous_response_id=maybe(word()),
)
_CONVERSATION = obj(id=word(), object=word("conversation"), created_at=INTEGER, metadata=_OBJECT)
_PAGE = obj(object=word("list"), data=listed(_SAID), first_id=word(), last_id=word(), has_more=YES_OR_NO)

_MADE = {"response_id": "$response.body#/id"}
_OPENED = {"conversation_id": "$response.body#/id"}
_SAME = {"conversation_id": "$request.path.conversation_id"}

CREATED = answer(
    "A response, or with `stream` its events as server-sent ones.",
    _RESPONSE,
    streams=True,
    retrieve=leads_to("retrieveResponse", **_MADE),
    items=leads_to("listInputItems", **_MADE),
    cancel=leads_to("cancelResponse", **_MADE),
    delete=leads_to("deleteResponse", **_MADE),
)
RETRIEVED = answer("A response, or with `stream` its events as server-sent ones.", _RESPONSE, streams=True)
CANCELLED = answer("The response as it is then.", _RESPONSE)
DELETED = answer("It is deleted.", obj(id=word(), object=word("response"), deleted=YES_OR_NO))
PAGE = answer("One page of the list.", _PAGE)

OPENED = answer(
    "The conversation.",
    _CONVERSATION,
    retrieve=leads_to("retrieveConversation", **_OPENED),
    update=leads_to("updateConversation", **_OPENED),
    delete=leads_to("deleteConversation", **_OPENED),
    add=leads_to("createItems", **_OPENED),
    items=leads_to("listItems", **_OPENED),
)
CONVERSATION = answer("The conversation.", _CONVERSATION)
CLOSED = answer("It is deleted.", obj(id=word(), object=word("conversation.deleted"), deleted=YES_OR_NO))
CONVERSATIONS = answer(
    "One page of the list.",
    obj(
        object=word("list"),
        data=listed(
            obj(
                id=word(),
                object=word("conversation"),
                created_at=INTEGER,
                used_at=INTEGER,
                metadata=_OBJECT,
                title=word(),
            )
        ),
        first_id=word(),
        last_id=word(),
        has_more=YES_OR_NO,
    ),
    retrieve=leads_to("retrieveConversation", conversation_id="$response.body#/data/0/id"),
)
ADDED = answer(
    "The items that were added.",
    _PAGE,
    item=leads_to("retrieveItem", item_id="$response.body#/data/0/id", **_SAME),
)
FOUND = answer("The item.", _SAID)
