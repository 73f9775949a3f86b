"""The processes on the path of a call; each contestant has a shim and a broker of its own."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

from bench.shim import load
from bench.shim.processes import Watched, free_port, listening, start
from tests.nats_server import NatsServer

REPLY_TYPE = "bench.reply"


@dataclass(frozen=True, slots=True)
class CallPath:
    """The processes that a call of one contestant passes, and the port where it begins."""

    name: str
    port: int
    processes: dict[str, Watched]


@asynccontextmanager
async def call_path(
    name: str, folder: Path, tool_port: int, nats: NatsServer | None
) -> AsyncIterator[CallPath]:
    """Start a shim and a broker whose events are in this NATS server, or in memory without one."""
    port, reply_port, broker_port = free_port(), free_port(), free_port()
    write_manifests(folder, 0, tool_port, reply_port)
    environment = {
        "BECKON_MANIFESTS": str(folder),
        "BECKON_PORT": str(broker_port),
        "BECKON_BROKER_REPLY_INBOX": f"http://127.0.0.1:{reply_port}/replies",
    }
    if nats is not None:
        environment |= {"BECKON_NATS_URL": nats.url, "BECKON_NATS_STREAM": f"bench-{broker_port}"}
    async with AsyncExitStack() as stack:
        broker = await start("beckon_broker", environment=environment)
        stack.push_async_callback(broker.stop)
        shim = await start(
            "beckon_shim",
            environment={
                "BECKON_SHIM_BROKER_URL": f"http://127.0.0.1:{broker_port}/{{namespace}}/{{name}}",
                "BECKON_PORT": str(port),
                "BECKON_SHIM_REPLY_PORT": str(reply_port),
                "BECKON_SHIM_KEYS": load.KEY,
            },
        )
        stack.push_async_callback(shim.stop)
        await listening(broker_port)
        await listening(port)
        yield CallPath(name, port, {"shim": shim, "broker": broker})


def write_manifests(folder: Path, others: int, tool_port: int, reply_port: int) -> None:
    """Write the Broker, the Triggers of the tool and of replies, and so many Triggers of other types."""
    items: list[dict[str, object]] = [
        _trigger("tool", f"http://127.0.0.1:{tool_port}/", {"type": "bench.call"}),
        _trigger("replies", f"http://127.0.0.1:{reply_port}/replies", {"replyid": ""}),
    ]
    items += [
        _trigger(f"other-{n}", "http://127.0.0.1:9/", {"type": f"bench.other.{n}"}) for n in range(others)
    ]
    new = folder / ".all.json.new"
    new.write_bytes(orjson.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    new.replace(folder / "all.json")


def _trigger(name: str, subscriber: str, attributes: dict[str, str]) -> dict[str, object]:
    return {
        "apiVersion": "eventing.knative.dev/v1",
        "kind": "Trigger",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "broker": "bench",
            "filter": {"attributes": attributes},
            "subscriber": {"uri": subscriber},
        },
    }
