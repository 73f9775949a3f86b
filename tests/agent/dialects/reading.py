"""Reading raw model text with a dialect, whole or in pieces, for the tests of the dialects."""

import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from beckon_agent.core.model_types import Declaration, ToolCall
from beckon_agent.core.run_events import TextDelta
from beckon_agent.dialects.base import Dialect


@dataclass(frozen=True)
class Read:
    """What a reader made of an answer; `before` is the text ahead of the first call."""

    text: str
    before: str
    calls: tuple[tuple[str, str], ...]

    @property
    def parsed(self) -> list[dict[str, object]]:
        """The calls with their arguments parsed, as the vectors write them."""
        return [{"name": name, "arguments": json.loads(arguments)} for name, arguments in self.calls]


def declare(*names: str) -> list[Declaration]:
    """Declarations of tools whose parameters nothing is known of."""
    return [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in names
    ]


def read(dialect: Dialect, pieces: Iterable[str], tools: Sequence[Declaration] = ()) -> Read:
    """Feed the pieces to a reader and gather what comes out."""
    counter = itertools.count()
    reader = dialect.make_reader(tools, lambda: f"call{next(counter):05}")
    items = [item for piece in pieces for item in reader.feed(piece)]
    items += reader.finish()
    texts = [item.text for item in items if isinstance(item, TextDelta)]
    before = itertools.takewhile(lambda item: isinstance(item, TextDelta), items)
    return Read(
        "".join(texts),
        "".join(item.text for item in before if isinstance(item, TextDelta)),
        tuple((item.name, item.arguments) for item in items if isinstance(item, ToolCall)),
    )
