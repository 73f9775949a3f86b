"""Stored answers on the terminal: text, calls and pending approvals."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from beckon_cli.errors import CommandError
from beckon_cli.output import call_text, compact_json, err, out, print_incomplete

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A response of the agent, as `POST /v1/responses` answers it."""

    document: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The id of the response, with the prefix `resp_`."""
        return str(self.document["id"])

    @property
    def text(self) -> str:
        """The model's text in the response."""
        parts = [part for item in self._items_of("message") for part in item["content"]]
        return "".join(part.get("text", "") for part in parts)

    @property
    def incomplete(self) -> bool:
        """True if a limit or the model's server ended the answer early."""
        return bool(self.document["status"] == "incomplete")

    @property
    def questions(self) -> list[Item]:
        """The calls waiting for a person's approval."""
        return list(self._items_of("mcp_approval_request"))

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls made, as `--json` shows them."""
        return [
            {
                "name": item["name"],
                "arguments": _parse_json(item["arguments"]),
                "failed": item["error"] is not None,
                "result": _parse_json(item["output"]) if item["error"] is None else item["error"],
            }
            for item in self._items_of("mcp_call")
        ]

    def show(self) -> None:
        """Print the answer and the next command.

        The next command is `beckon approve` for an answer with waiting calls, else `beckon replay`. Raises
        `CommandError` for an answer that failed.
        """
        for call in self.calls:
            out.print(Text(f"→ {call_text(call['name'], call['arguments'])}", style="cyan"))
            style = "red" if call["failed"] else "green"
            out.print(Text(f"← {call['name']}: {compact_json(call['result'])}", style=style))
        if self.text:
            out.print(Text(self.text))
        if self.incomplete:
            print_incomplete()
        for question in self.questions:
            requested = call_text(question["name"], _parse_json(question["arguments"]))
            out.print(Text(f"? {requested}   waits for a person's word", style="yellow"))
        if self.questions:
            err.print(f"next: beckon approve {self.id}   (or: beckon approve {self.id} --deny)", style="dim")
        else:
            err.print(f"stored as {self.id}   (again: beckon replay {self.id})", style="dim")
        error = self.document.get("error")
        if error:
            raise CommandError(str(error.get("message", error)))

    def _items_of(self, kind: str) -> Iterator[Item]:
        return (item for item in self.document["output"] if item["type"] == kind)


def _parse_json(text: str | None) -> Any:
    """Return parsed JSON; a text without JSON is returned unchanged."""
    try:
        return json.loads(text or "")
    except ValueError:
        return text


def document_of(answer: StoredAnswer) -> dict[str, object]:
    """Return the `--json` document of a stored answer."""
    waiting = [question["name"] for question in answer.questions]
    return {
        "response": answer.id,
        "answer": answer.text,
        "incomplete": answer.incomplete,
        "calls": answer.calls,
        "waiting": waiting,
    }
