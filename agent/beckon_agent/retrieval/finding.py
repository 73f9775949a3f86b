"""`find_tools`: the tool by which a model brings in what it was not sent."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from beckon_agent.retrieval.index import Index
from beckon_agent.retrieval.queries import named_in, query_of_text
from beckon_contract.tools import Tool

_USUAL: Final = 8
_MOST: Final = 20
_ONE_LINE: Final = 160  # characters

FIND_TOOLS: Final = Tool(
    name="find_tools",
    namespace="",
    event_type="find_tools",
    type="dev.beckon.find-tools",
    source=None,
    description=(
        "Search the many tools that are not shown to you, by what they do. Those that are found can be "
        "called from your next turn on. Use it whenever none of your tools fits, before you say that "
        "something cannot be done."
    ),
    parameters={
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": (
                    "What the tool should do and with what, in a few words that its description may have, "
                    "such as 'cancel pending order'; or the exact name of a tool."
                ),
                "minLength": 1,
                "maxLength": 500,
            },
            "limit": {
                "type": "integer",
                "description": f"How many tools to find; {_USUAL} if left out.",
                "minimum": 1,
                "maximum": _MOST,
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    },
    parameters_from="",
    idempotent=True,
    read_only=True,
)
"""It stands for no EventType: the agent answers it itself."""


@dataclass(frozen=True, slots=True)
class Finder:
    """Answers `find_tools` for one request; `room` is how many found tools can be declared next."""

    index: Index
    offered: Mapping[str, Tool]
    room: int

    def answer(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """Return the names and one-line descriptions of what fits best, for the model.

        `arguments` have passed the schema of `FIND_TOOLS`; without it, what is wrong counts as left out.
        """
        query, limit = arguments.get("query"), arguments.get("limit")
        most = int(limit) if isinstance(limit, int | float) else _USUAL
        names = self.find(query if isinstance(query, str) else "", max(1, min(most, _MOST, self.room)))
        if not names:
            note = "No tool fits these words. Try others: what is to be done, and with what."
            return {"tools": [], "note": note}
        tools = [{"name": name, "description": _one_line(self.offered[name])} for name in names]
        return {"tools": tools, "note": "You can call these tools from now on."}

    def find(self, query: str, most: int) -> list[str]:
        """Return the names of the tools that a query names, and then of those that fit it best."""
        named = named_in(query, self.offered)
        fitting = self.index.best(query_of_text(query), most, self.offered.__contains__)
        return list(dict.fromkeys([*named, *fitting]))[:most]


def _one_line(tool: Tool) -> str:
    text = " ".join(tool.description.split())
    return text if len(text) <= _ONE_LINE else text[: _ONE_LINE - 1].rstrip() + "…"
