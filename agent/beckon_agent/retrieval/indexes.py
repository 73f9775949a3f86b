"""Indexes that are kept: made once for each catalogue, beside the requests."""

import asyncio
from collections.abc import Mapping
from typing import Final

from beckon_agent.retrieval.fields import Terms, terms_of
from beckon_agent.retrieval.index import Index
from beckon_contract.tools import Tool

_SMALL: Final = 256
"""Up to so many tools an index takes some hundredths of a second, and nobody has to do with an old one."""


class Indexes:
    """The index of a catalogue, made anew where it has changed.

    The first one is waited for. After that, requests go on with the last one while a thread makes the next,
    which takes some tenths of a second with thousands of tools; until then a new tool is found by its name
    only, and a changed one by what it said before.
    """

    def __init__(self) -> None:
        self._kept: tuple[Mapping[str, Tool], Index] | None = None
        self._terms: dict[str, tuple[Tool, Terms]] = {}
        self._making: asyncio.Task[Index] | None = None

    async def of(self, tools: Mapping[str, Tool]) -> Index:
        """Return the index of a catalogue, or of the one before it for a moment."""
        kept = self._kept
        if kept is not None and _same(kept[0], tools):
            return kept[1]
        if self._making is None:
            self._making = asyncio.create_task(self._make(tools))
        if kept is not None and len(tools) > _SMALL:
            return kept[1]
        made = await asyncio.shield(self._making)
        return made if self._is_of(tools) else await self.of(tools)

    def _is_of(self, tools: Mapping[str, Tool]) -> bool:
        return self._kept is not None and _same(self._kept[0], tools)

    async def _make(self, tools: Mapping[str, Tool]) -> Index:
        try:
            index = await asyncio.to_thread(self._index, tools)
            self._kept = tools, index
            return index
        finally:
            self._making = None

    def _index(self, tools: Mapping[str, Tool]) -> Index:
        """Return an index; half of the work is reading the tools, and most of them have not changed."""
        known = self._terms
        read = {}
        for name, tool in tools.items():
            before = known.get(name)
            read[name] = before if before is not None and before[0] is tool else (tool, terms_of(tool))
        self._terms = read
        return Index(tools, terms=[terms for _, terms in read.values()])


def _same(before: Mapping[str, Tool], now: Mapping[str, Tool]) -> bool:
    """Whether two catalogues hold the same tools; an unchanged tool stays the same object."""
    if before is now:
        return True
    return len(before) == len(now) and all(before.get(name) is tool for name, tool in now.items())
