"""Gates in the model and in the tools: a request waits there until a test has seen it and opens."""

import asyncio


class Gate:
    """One gate, for so many requests; those that come once it was opened just pass."""

    def __init__(self, requests: int = 1) -> None:
        self._awaited = requests
        self.arrived = asyncio.Event()
        self._opened = asyncio.Event()

    async def stand(self) -> None:
        """Stand here until the gate is opened; tell the test once all are here that it waits for."""
        if self._opened.is_set():
            return
        self._awaited -= 1
        if self._awaited == 0:
            self.arrived.set()
        await self._opened.wait()

    def open(self) -> None:
        """Let everybody through, now and later."""
        self._opened.set()


class Gates:
    """All gates, by the place where they stand and the name of the run that is held up there."""

    def __init__(self) -> None:
        self._gates: dict[tuple[str, str], Gate] = {}

    def put(self, place: str, name: str, requests: int = 1) -> Gate:
        """Put up a gate."""
        gate = self._gates[place, name] = Gate(requests)
        return gate

    async def pass_by(self, place: str, name: str) -> None:
        """Stand at the gate of this place, where there is one."""
        gate = self._gates.get((place, name))
        if gate is not None:
            await gate.stand()

    def open_all(self) -> None:
        """Let nothing stand in the way of an end."""
        for gate in self._gates.values():
            gate.open()


GATES = Gates()
