"""Lines that a person types, without stopping everything else while they think."""

import asyncio
import sys
import threading
from collections.abc import AsyncGenerator


async def typed_lines(prompt: str) -> AsyncGenerator[str]:
    """Yield the lines of standard input that are not blank; the prompt is shown on a terminal only.

    A thread of its own reads: it may be left behind in the middle of a line when the program ends,
    which the loop's own threads may not.
    """
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str | None] = asyncio.Queue()
    wanted = threading.Semaphore(0)

    def read() -> None:
        while True:
            wanted.acquire()
            if sys.stdin.isatty():
                sys.stdout.write(prompt)
                sys.stdout.flush()
            line = sys.stdin.readline()
            loop.call_soon_threadsafe(lines.put_nowait, line or None)
            if not line:
                return

    threading.Thread(target=read, name="keyboard", daemon=True).start()
    while True:
        wanted.release()
        line = await lines.get()
        if line is None:
            return
        if line := line.strip():
            yield line
