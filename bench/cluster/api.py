"""The API server over `kubectl proxy`: requests and watches without a process for each."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import httpx
import orjson

from tests.cluster.kube import Kube

_SERVING = re.compile(rb"127\.0\.0\.1:(\d+)")
_START_SECONDS = 20


class Api:
    """Reads of the API server, in one namespace where a path is relative."""

    def __init__(self, client: httpx.AsyncClient, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    def path(self, group_version: str, plural: str) -> str:
        """Return the path of a kind's objects in the namespace."""
        return f"/apis/{group_version}/namespaces/{self._namespace}/{plural}"

    async def get(self, path: str, **query: str) -> dict[str, Any]:
        """Return one answer in JSON."""
        answer = (await self._client.get(path, params=query)).raise_for_status()
        found: dict[str, Any] = orjson.loads(answer.content)
        return found

    async def text(self, path: str) -> str:
        """Return one answer as text."""
        return (await self._client.get(path)).raise_for_status().text

    async def count(self, path: str) -> int:
        """Return how many objects there are, without reading them."""
        page = await self.get(path, limit="1")
        return len(page["items"]) + int(page["metadata"].get("remainingItemCount") or 0)

    async def watch(self, path: str) -> AsyncIterator[dict[str, Any]]:
        """Yield each object that is added or changed from now on, without end.

        A server may end a watch whose reader is slow; then all objects are yielded as they are.
        """
        version = (await self.get(path, limit="1"))["metadata"]["resourceVersion"]
        while True:
            async with aclosing(self._changes(path, version)) as changes:
                async for found in changes:
                    yield found
            whole = await self.get(path)
            for found in whole["items"]:
                yield found
            version = whole["metadata"]["resourceVersion"]

    async def _changes(self, path: str, version: str) -> AsyncGenerator[dict[str, Any]]:
        """Yield what changes after a version, until the watch ends."""
        query = {"watch": "1", "resourceVersion": version, "timeoutSeconds": "7200"}
        try:
            async with self._client.stream("GET", path, params=query, timeout=None) as answer:
                answer.raise_for_status()
                async for line in answer.aiter_lines():
                    event = orjson.loads(line)
                    if event["type"] == "ERROR":
                        return
                    if event["type"] in ("ADDED", "MODIFIED"):
                        yield event["object"]
        except httpx.RemoteProtocolError:  # ended in the middle
            return


@asynccontextmanager
async def reach(kube: Kube) -> AsyncIterator[Api]:
    """Open a client of the API server, with the rights of the kubeconfig."""
    process = await asyncio.create_subprocess_exec(
        str(kube.kubectl), "proxy", "--port=0", stdout=asyncio.subprocess.PIPE, env=dict(kube.environment())
    )
    try:
        output = process.stdout
        said = await asyncio.wait_for(output.readline(), _START_SECONDS) if output else b""
        port = _SERVING.search(said)
        if port is None:
            raise OSError(f"kubectl proxy did not start: {said.decode().strip()!r}")
        base = f"http://127.0.0.1:{int(port[1])}"
        async with httpx.AsyncClient(base_url=base, timeout=120) as client:
            yield Api(client, kube.namespace)
    finally:
        process.terminate()
        await process.wait()


def is_ready(resource: dict[str, Any]) -> bool:
    """Whether an object's condition Ready is true."""
    conditions = (resource.get("status") or {}).get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
