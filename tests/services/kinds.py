"""The kinds of services: what each is made with, and what it answers."""

from dataclasses import dataclass

GREETING = {"greeting": "Hello Ada"}


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of service; `service` names the process that serves it at `path`, `result` is what it answers.

    With `answers_event` false, its answer is something else than a CloudEvent, so its EventType says that
    every answer counts.
    """

    name: str
    service: str
    path: str
    result: object = None
    answers_event: bool = True


KINDS = (
    Kind("fastapi-binary", "fastapi", "binary", GREETING),
    Kind("fastapi-binary-replyid", "fastapi", "binary-replyid", GREETING),
    Kind("fastapi-structured", "fastapi", "structured", GREETING),
    Kind("fastapi-structured-replyid", "fastapi", "structured-replyid", GREETING),
    Kind("func-python", "func", "func", GREETING),
    Kind("func-python-replyid", "func", "func-replyid", GREETING),
    Kind("node", "node", "node", GREETING),
    Kind("node-replyid", "node", "node-replyid", GREETING),
    Kind("go", "go", "go", GREETING),
    Kind("go-replyid", "go", "go-replyid", GREETING),
    Kind("all-extensions-copied", "fastapi", "copying", GREETING),
    Kind("responseid", "fastapi", "responseid", GREETING),
    Kind("plain-json", "fastapi", "json", GREETING, answers_event=False),
    Kind("plain-text", "fastapi", "text", "Hello Ada", answers_event=False),
    Kind("no-content", "fastapi", "204", answers_event=False),
    Kind("accepted", "fastapi", "202", answers_event=False),
)
