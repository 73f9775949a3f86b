"""A tool in a process of its own, which a test may kill, and calls of it."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from beckon_contract.cloudevents.events import CloudEvent, from_http, to_binary
from tests.e2e.local_platform import clean_environment
from tests.patience import PATIENCE

Process = asyncio.subprocess.Process


@asynccontextmanager
async def tool_process(folder: Path, reference: str, **settings: str) -> AsyncIterator[tuple[Process, str]]:
    """Serve the tool `module:name` of a folder on a free port; give the process and its address."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "beckon_tools", "serve", reference),
        env=clean_environment({"PORT": "0", **settings}),
        cwd=folder,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(PATIENCE):
            line = ""
            while "http://" not in line:
                line = (await process.stderr.readline()).decode()
                assert line, "the tool has ended"
        yield process, "http://" + line.partition("http://")[2].split()[0].strip('",')
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def post(url: str, event: CloudEvent) -> CloudEvent:
    """Deliver an event, as a Broker does, and return the reply."""
    headers, body = to_binary(event)
    async with httpx.AsyncClient(timeout=PATIENCE) as client:
        response = await client.post(url, headers=headers, content=body)
    assert response.status_code == 200, response.text
    return from_http(response.headers.raw, response.content)
