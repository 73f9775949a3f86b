"""`beckon approve`: a person's decision on waiting calls."""

import asyncio

from beckon_cli.client import AgentClient
from beckon_cli.errors import CommandError
from beckon_cli.output import err, out, print_json
from beckon_cli.settings import Settings, load_settings
from beckon_cli.stored import StoredAnswer, document_of

_APPROVAL = "mcpr_"


def approve(response: str, /, *, deny: bool = False, reason: str = "", json: bool = False) -> None:
    """Allow the calls that a response waits with, and print what follows.

    Each call is decided about once: a second word that says otherwise is refused. The id of a single
    approval decides about its call alone, and does not wait for what follows.

    Parameters
    ----------
    response
        The id of the response that waits, resp_…, or of one approval, mcpr_…, as `beckon approvals` has it.
    deny
        Do not make the calls; the model gets the refusal and its reason.
    reason
        The reason, for the model and the record of the run.
    json
        Print one JSON document: response, answer, calls, waiting.
    """
    if not response:
        raise CommandError("no response; write for instance: beckon approve resp_0123…", status=2)
    word = {"approve": not deny, **({"reason": reason} if reason else {})}
    approves = _decide_one if response.startswith(_APPROVAL) else _decide_all
    asyncio.run(approves(load_settings(), response, word, as_json=json))


async def _decide_one(settings: Settings, approval: str, word: dict[str, object], *, as_json: bool) -> None:
    async with AgentClient(settings.url, settings.api_key.get_secret_value()) as client:
        decided = await client.decide_approval(approval, word)
    if as_json:
        print_json(decided)
    else:
        out.print(f"{decided['decision']}; what follows: beckon runs")


async def _decide_all(settings: Settings, response: str, word: dict[str, object], *, as_json: bool) -> None:
    async with AgentClient(settings.url, settings.api_key.get_secret_value()) as client:
        waiting = StoredAnswer(await client.get_response(response))
        if not waiting.questions:
            raise CommandError(f"{response} waits for nothing; it is {waiting.document['status']}")
        answers = [
            {"type": "mcp_approval_response", "approval_request_id": question["id"], **word}
            for question in waiting.questions
        ]
        body = {"model": waiting.document["model"], "previous_response_id": response, "input": answers}
        with err.status("the run goes on …"):
            answer = StoredAnswer(await client.create_response(body))
    if as_json:
        print_json(document_of(answer))
    else:
        answer.show()
