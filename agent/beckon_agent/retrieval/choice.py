"""One choice among many tools: the names to declare, for a conversation as it stands."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from beckon_agent.model.types import Message
from beckon_agent.retrieval.conversation import answered, found, mentioned, query_of, used
from beckon_agent.retrieval.finding import Finder
from beckon_agent.retrieval.places import placed

_PEOPLE: Final = frozenset({"user", "system", "developer"})
_MACHINES: Final = frozenset({"assistant", "tool"})
_REPEATED_TURNS: Final = 8
_REMEMBERED: Final = 2048


class Memory:
    """What was worked out of earlier turns: it saves time, and changes no choice."""

    def __init__(self) -> None:
        self._names: OrderedDict[int, list[str]] = OrderedDict()

    def recall(self, turn: int) -> list[str] | None:
        """Return the names of a turn."""
        return self._names.get(turn)

    def keep(self, turn: int, names: list[str]) -> None:
        """Keep the names of a turn, and forget those of the one that was kept first."""
        self._names[turn] = names
        if len(self._names) > _REMEMBERED:
            self._names.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Choice:
    """Chooses at most `room` names of what the finder offers; `pinned` are always among them."""

    finder: Finder
    pinned: Sequence[str]
    room: int

    def next(
        self, messages: Sequence[Message], sent: Sequence[str], *, steady: bool, needed: Sequence[str] = ()
    ) -> list[str]:
        """Return the names to declare after `sent` were the last ones."""
        offered = self.finder.offered
        fitting = self.finder.index.best(query_of(messages), 2 * self.room, offered.__contains__)
        wanted = [  # whatever it says; the most urgent first
            *needed,
            *mentioned(messages, offered, by=_PEOPLE),
            *found(messages),
            *self.pinned,
            *[name for name in used(messages) if name in offered][: max(1, self.room // 4)],
            *mentioned(messages, offered, by=_MACHINES),
        ]
        known = [name for name in wanted if name in offered]
        return placed(sent, known, fitting, self.room, steady=steady)

    def first(self, messages: Sequence[Message], memory: Memory, needed: Sequence[str] = ()) -> list[str]:
        """Return the names to declare where nobody knows what was sent: it is worked out turn by turn."""
        names = list(self.pinned)
        for end, turn in self._turns(messages):
            known = memory.recall(turn)
            if known is None:
                known = self.next(messages[:end], names, steady=_goes_on(messages[:end]))
                memory.keep(turn, known)
            names = known
        return self.next(messages, names, steady=_goes_on(messages), needed=needed)

    def _turns(self, messages: Sequence[Message]) -> list[tuple[int, int]]:
        """Return the first answered turns: where each ends, and a number for all that it was chosen from."""
        turns = []
        begun = 0
        number = hash((frozenset(self.finder.offered), self.room))
        for end in answered(messages)[:_REPEATED_TURNS]:
            number = hash((number, *map(repr, messages[begun:end])))
            turns.append((end, number))
            begun = end
        return turns


def _goes_on(messages: Sequence[Message]) -> bool:
    """Whether the model is in the middle of a task: a tool spoke last."""
    return bool(messages) and messages[-1].get("role") == "tool"
