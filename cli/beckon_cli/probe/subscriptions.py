"""Triggers for a probe: made before its calls, removed after them.

A folder of manifests serves the embedded broker, and any Broker that reads a folder and describes its
Triggers at `/status` in the same form. `cluster` serves a Broker in Kubernetes.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import aiohttp
import orjson

from beckon_cli.errors import CommandError

Manifest = Mapping[str, Any]
RUN_LABEL = "beckon.dev/probe"
READY_SECONDS = 120.0
FOLDER_SECONDS = 10.0  # a folder is read within a second
_PAUSE = 0.1


class Subscriptions(Protocol):
    """Creates Triggers, and removes them."""

    async def apply(self, manifests: Sequence[Manifest]) -> None:
        """Create these Triggers, and a Broker if there is one among them; return when they are ready.

        Raises `CommandError` if they never are.
        """
        ...

    async def remove(self) -> None:
        """Remove what `apply` created, even if only a part of it."""
        ...


class FolderSubscriptions:
    """Triggers in a folder of manifests that a Broker follows, in one file of their own.

    They must be ready within `wait` seconds.
    """

    def __init__(self, folder: Path, broker_url: str, run: str, wait: float = FOLDER_SECONDS) -> None:
        self.folder = folder
        self._wait = wait
        self._file = folder / f"beckon-probe-{run}.json"
        self._status_url = status_url(broker_url)

    async def apply(self, manifests: Sequence[Manifest]) -> None:
        """Write the file; wait until the Broker reports its Triggers as ready."""
        document = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        new = self._file.with_name(f".{self._file.name}")
        try:
            new.write_bytes(orjson.dumps(document))
            new.replace(self._file)
        except OSError as error:
            raise CommandError(f"cannot write {self._file}: {error.strerror}", status=2) from None
        wanted = {each["metadata"]["name"] for each in manifests if each["kind"] == "Trigger"}
        deadline = time.monotonic() + self._wait
        while missing := wanted - await self._ready():
            if time.monotonic() > deadline:
                cure = "does the Broker follow this folder? Name its folder with --manifests"
                raise CommandError(f"{len(missing)} Triggers in {self._file} are not ready; {cure}", status=2)
            await asyncio.sleep(_PAUSE)

    async def remove(self) -> None:
        """Delete the file."""
        self._file.unlink(missing_ok=True)

    async def _ready(self) -> set[str]:
        status = await read_status(self._status_url)
        return {each["name"] for each in (status or {}).get("triggers", ()) if each.get("ready")}


def status_url(broker_url: str) -> str:
    """Return the address at which the embedded broker of this ingress describes its Triggers."""
    parts = urlsplit(broker_url)
    return f"{parts.scheme}://{parts.netloc}/status"


async def read_status(url: str) -> dict[str, Any] | None:
    """Return the status document of an embedded broker, `None` from another server or without an answer."""
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session,
            session.get(url) as response,
        ):
            document = orjson.loads(await response.read())
    except (aiohttp.ClientError, OSError, ValueError):
        return None
    readable = response.status == 200 and isinstance(document, dict) and "triggers" in document
    return document if readable else None
