"""The OpenAPI descriptions of runs and approvals."""

from typing import Any

from beckon_agent.api.http.errors import problem_responses
from beckon_agent.api.http.openapi import (
    INTEGER,
    NUMBER,
    STREAM,
    YES_OR_NO,
    answer,
    leads_to,
    listed,
    maybe,
    obj,
    word,
)

_STATUS = word("queued", "running", "suspended", "completed", "incomplete", "failed", "cancelled")
_USAGE = maybe(obj(input_tokens=INTEGER, output_tokens=INTEGER, total_tokens=INTEGER))
_RUN: dict[str, Any] = {
    "id": word(),
    "object": word("run"),
    "agent": word(),
    "face": word(),
    "status": _STATUS,
    "ending": maybe(word()),
    "error": maybe(obj(code=word(), message=word())),
    "created_at": NUMBER,
    "ended_at": maybe(NUMBER),
    "background": YES_OR_NO,
    "conversation": maybe(word()),
    "previous": maybe(word()),
    "takeovers": INTEGER,
    "question": word(),
    "usage": _USAGE,
}
_ORIGIN = word("api", "dialect", "recovered")
_CALL = obj(
    event_id=word(),
    name=word(),
    origin=_ORIGIN,
    state=word("open", "approval", "sent", "accepted", "client", "done"),
    attempts=INTEGER,
    deliveries=maybe(INTEGER),
    failed=YES_OR_NO,
    asked_at=maybe(NUMBER),
    sent_at=maybe(NUMBER),
    finished_at=maybe(NUMBER),
    dead_letter=maybe(word()),
    approval=maybe(obj(id=word(), decision=maybe(word("approved", "denied")))),
)
_STEP = obj(step=INTEGER, text=word(), seconds=maybe(NUMBER), usage=_USAGE, calls=listed(_CALL))
_EXCHANGED = obj(id=word(), name=word(), call=maybe({"type": "object"}), reply=maybe({"type": "object"}))
_WAITING = obj(
    id=word(),
    object=word("approval"),
    run=word(),
    response=maybe(word()),
    agent=word(),
    name=word(),
    origin=_ORIGIN,
    asked_at=maybe(NUMBER),
)


def _page(item: dict[str, Any]) -> dict[str, Any]:
    return obj(object=word("list"), data=listed(item), first_id=word(), last_id=word(), has_more=YES_OR_NO)


_ERRORS = {"_503": "The store does not answer.", "default": "Any other error, in the same shape."}
_NO_RUN = {"_404": "There is no such run, or it is not the caller's."}
_FIRST = "$response.body#/data/0/id"

RUNS = {
    **answer(
        "The caller's runs, the newest first.",
        _page(obj(**_RUN, tools=listed(obj(name=word(), calls=INTEGER)), approvals_waiting=INTEGER)),
        run=leads_to("retrieveRun", run_id=_FIRST),
        events=leads_to("listRunEvents", run_id=_FIRST),
    ),
    **problem_responses(_400="A value is not one of those that may be asked for.", **_ERRORS),
}
RUN = {
    **answer("The run with its steps.", obj(**_RUN, steps=listed(_STEP))),
    **problem_responses(**_NO_RUN, **_ERRORS),
}
_events = answer("What went back and forth for each call.", _page(_EXCHANGED))
_events[200]["content"].update(STREAM)
EVENTS = {**_events, **problem_responses(_400="A value cannot be read.", **_NO_RUN, **_ERRORS)}
WAITING = {
    **answer(
        "The calls that wait for the caller's word.",
        _page(_WAITING),
        decide=leads_to("decideApproval", approval_id=_FIRST),
    ),
    **problem_responses(_400="A value cannot be read.", **_ERRORS),
}
DECIDED = {
    **answer(
        "The decision counts, and the run goes on.",
        obj(id=word(), object=word("approval"), run=word(), decision=word("approved", "denied")),
    ),
    **problem_responses(
        _400="The body is no JSON object, or does not say what is decided.",
        _404="No call of the caller's runs waits, or waited, under this id.",
        _409="Somebody has decided otherwise, or the run is over.",
        **_ERRORS,
    ),
}
