"""Tools that the tests of the loop call; what they did is seen from inside, for they share its process."""

import asyncio
from dataclasses import dataclass, field

from cloudevents.core.v1.event import CloudEvent

from beckon_tools import Hints, Media, Progress, ToolError, tool
from beckon_tools.declaration import AnyTool


@dataclass
class Bench:
    """What the tools have seen, and the gate at which `wait` waits."""

    running: int = 0
    most: int = 0
    waiting: asyncio.Event = field(default_factory=asyncio.Event)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    calls: list[str] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)
    """The data of the calls of `echo`, as it was delivered."""

    def reset(self) -> None:
        """Forget all of it."""
        self.running = self.most = 0
        self.waiting = asyncio.Event()  # each belongs to the loop that first waits for it
        self.gate = asyncio.Event()
        self.calls.clear()
        self.data.clear()


BENCH = Bench()


@tool(type="test.echo", hints=Hints(idempotent=True))
async def echo(text: str, count: int = 1, event: CloudEvent | None = None) -> str:
    """Say something again."""
    BENCH.calls.append(text)
    data = event.get_data() if event is not None else None
    if isinstance(data, bytes):
        BENCH.data.append(data)
    return text * count


@tool(type="test.nap")
async def nap(milliseconds: int) -> str:
    """Sleep a little."""
    BENCH.running += 1
    BENCH.most = max(BENCH.most, BENCH.running)
    await asyncio.sleep(milliseconds / 1000)
    BENCH.running -= 1
    return f"slept {milliseconds}"


@tool(type="test.wait")
async def wait() -> str:
    """Stand at the gate until it opens."""
    BENCH.calls.append("wait")
    BENCH.waiting.set()
    await BENCH.gate.wait()
    return "through"


@tool(type="test.hurry", hints=Hints(timeout=0.3))
async def hurry() -> str:
    """Be slower than the manifest allows."""
    await BENCH.gate.wait()
    return "too late"


@tool(type="test.steps")
async def steps(steps: list[int], progress: Progress) -> str:
    """Report each step; stand at the gate after each."""
    for step in steps:
        await progress.report(step, 4, f"step {step}")
        await BENCH.gate.wait()
        BENCH.gate.clear()
    return "there"


@tool(type="test.fail")
async def fail(kind: str) -> str:
    """Fail on purpose."""
    if kind == "refuse":
        raise ToolError("this tool was asked to refuse")
    raise RuntimeError("the paper is out")


@tool(type="test.measure")
async def measure(digits: int) -> dict[str, object]:
    """Give an integer of so many digits, and no number for none."""
    return {"long": int("1" * digits) if digits else float("nan")}


@tool(type="test.picture")
async def picture() -> Media:
    """Draw something."""
    return Media("image/png", b"\x89PNG" * 300)


@tool(type="test.danger", hints=Hints(requires_approval=True, idempotent=True))
async def danger() -> str:
    """Do what a person must allow."""
    BENCH.calls.append("danger")
    return "done"


TOOLS: list[AnyTool] = [echo, nap, wait, hurry, fail, measure, picture, danger, steps]
