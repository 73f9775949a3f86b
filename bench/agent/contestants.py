"""The measured agents: each is an HTTP service with its own form of requests and answers."""

import json
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from beckon_cli.local.plan import manifests
from bench.agent.environments import Peer
from bench.peer_environment import ROOT
from bench.shim.processes import Child, free_port, listening, start
from bench.shim.wire import request

_MOST_RUNS = 2_000
_WEATHER = Path(__file__).with_name("weather.yaml")
_SECONDS_TO_START = 120  # a machine with much to do


@dataclass(frozen=True, slots=True)
class Wire:
    """The form of an agent's requests, and the place of the text in its answers."""

    path: str
    make_body: Callable[[str, bool], dict[str, object]]
    whole: Callable[[Any], str]
    piece: Callable[[Any], str]
    headers: Sequence[tuple[str, str]] = ()

    def request(self, question: str, *, stream: bool) -> bytes:
        """Return the bytes of a request."""
        headers = [("content-type", "application/json"), *self.headers]
        # Without a key, Beckon is there for this machine alone, and the name says who is meant.
        return request(self.path, headers, orjson.dumps(self.make_body(question, stream)), "127.0.0.1")

    def text(self, body: bytes, *, stream: bool) -> str:
        """Return the text of an answer."""
        return "".join(self.piece(event) for event in _events(body)) if stream else self.whole(_json(body))


@dataclass(frozen=True, slots=True)
class Collector:
    """A collector of spans at a port."""

    port: int

    @property
    def url(self) -> str:
        """What OTEL_EXPORTER_OTLP_ENDPOINT says."""
        return f"http://127.0.0.1:{self.port}"


@dataclass(frozen=True, slots=True)
class Contestant:
    """An agent that serves at a port; `path` are the processes that its runs go through, its own first."""

    name: str
    port: int
    wire: Wire
    path: Sequence[Child]

    @property
    def own(self) -> Child:
        """The agent's process."""
        return self.path[0]


CHAT = Wire(
    "/chat",
    lambda question, stream: {"question": question, "stream": stream},
    lambda document: str(document["text"]),
    str,
)
COMPLETIONS = Wire(
    "/v1/chat/completions",
    lambda question, stream: {
        "model": "beckon",
        "messages": [{"role": "user", "content": question}],
        "stream": stream,
    },
    lambda document: str(document["choices"][0]["message"]["content"]),
    lambda event: "".join(choice["delta"].get("content") or "" for choice in event["choices"]),
)
RESPONSES = Wire(
    "/v1/responses",
    lambda question, stream: {"model": "beckon", "input": question, "stream": stream},
    lambda document: "".join(
        part["text"] for item in document["output"] if item["type"] == "message" for part in item["content"]
    ),
    lambda event: event["delta"] if event["type"] == "response.output_text.delta" else "",
)


@dataclass(slots=True)
class Field:
    """The processes of one benchmark; they end with `stack`."""

    model: Child
    model_port: int
    tool: Child
    tool_port: int
    stack: AsyncExitStack

    @property
    def model_url(self) -> str:
        """The base URL of the model."""
        return f"http://127.0.0.1:{self.model_port}/v1"

    async def peer(self, peer: Peer) -> Contestant:
        """Start another agent."""
        child = await start(
            f"bench.agent.peers.{peer.module}",
            self.model_url,
            f"http://127.0.0.1:{self.tool_port}/",
            environment={"PYTHONPATH": str(ROOT)},
            python=str(peer.python),
        )
        self.stack.push_async_callback(child.stop)
        port = int(await child.first_line(_SECONDS_TO_START))
        return Contestant(peer.title, port, CHAT, (child, self.tool))

    async def beckon(self) -> list[Contestant]:
        """Start Beckon as on a laptop: broker, shim and agent, each with its defaults but for its ports."""
        folder, rest, plain = await self._platform({})
        port, stored_port = free_port(), free_port()
        agent = await self._agent(port, plain)
        storing = await self._agent(stored_port, {**plain, "BECKON_STORE": f"sqlite:///{folder / 'runs.db'}"})
        return [
            Contestant("Beckon", port, COMPLETIONS, (agent, *rest)),
            Contestant("Beckon, Responses, stored", stored_port, RESPONSES, (storing, *rest)),
        ]

    async def traced(self, name: str, settings: dict[str, str]) -> Contestant:
        """Start one more Beckon, all of whose processes have these variables of OpenTelemetry."""
        _, rest, plain = await self._platform(settings)
        port = free_port()
        agent = await self._agent(port, {**plain, **settings})
        return Contestant(name, port, COMPLETIONS, (agent, *rest))

    async def storing(self, settings: dict[str, str]) -> Contestant:
        """Start a Beckon whose agent stores runs in SQLite and has these settings."""
        folder, rest, plain = await self._platform({})
        port = free_port()
        store = f"sqlite:///{folder / 'runs.db'}"
        agent = await self._agent(port, {**plain, "BECKON_STORE": store, **settings})
        return Contestant("Beckon", port, COMPLETIONS, (agent, *rest))

    async def collector(self) -> Collector:
        """Start a collector that throws away what it takes."""
        child = await start("bench.agent.collector")
        self.stack.push_async_callback(child.stop)
        return Collector(int(await child.first_line(_SECONDS_TO_START)))

    async def _platform(self, settings: dict[str, str]) -> tuple[Path, tuple[Child, ...], dict[str, str]]:
        """Start broker and shim; return their folder, what a call goes through, what an agent has to know."""
        folder = Path(self.stack.enter_context(TemporaryDirectory(prefix="beckon-bench-")))
        broker_port, shim_port, reply_port = free_port(), free_port(), free_port()
        replies = f"http://127.0.0.1:{reply_port}"
        (folder / "generated.yaml").write_text(
            manifests(
                addresses={},
                brokers={("default", "default"): None},
                broker_url=f"http://127.0.0.1:{broker_port}",
                reply_url=replies,
                reply_attribute="replyid",
            )
        )
        weather = _WEATHER.read_text().replace("$tool", f"http://127.0.0.1:{self.tool_port}/")
        (folder / "weather.yaml").write_text(weather)
        broker = await self._started(
            "beckon_broker",
            broker_port,
            BECKON_PORT=str(broker_port),
            BECKON_MANIFESTS=str(folder),
            **settings,
        )
        keys = {"BECKON_SHIM_KEYS": secrets.token_hex(32)}
        shim = await self._started(
            "beckon_shim",
            shim_port,
            BECKON_PORT=str(shim_port),
            BECKON_SHIM_REPLY_PORT=str(reply_port),
            BECKON_SHIM_BROKER_URL=f"http://127.0.0.1:{broker_port}/{{namespace}}/{{name}}",
            **keys,
            **settings,
        )
        address = f"http://127.0.0.1:{shim_port}"
        plain = {"BECKON_MANIFESTS": str(folder), "BECKON_SHIM_URL": address, **keys}
        return folder, (shim, broker, self.tool), plain

    async def _agent(self, port: int, environment: dict[str, str]) -> Child:
        return await self._started(
            "beckon_agent",
            port,
            BECKON_PORT=str(port),
            BECKON_MAX_RUNS=str(_MOST_RUNS),
            OPENAI_BASE_URL=self.model_url,
            OPENAI_API_KEY="",
            BECKON_MODEL="bench",
            **environment,
        )

    async def _started(self, module: str, port: int, **environment: str) -> Child:
        child = await start(module, environment=environment)
        self.stack.push_async_callback(child.stop)
        await listening(port, _SECONDS_TO_START)
        return child


@asynccontextmanager
async def open_field() -> AsyncIterator[Field]:
    """Start the model and the tool; at the end every process of the field ends."""
    async with AsyncExitStack() as stack:
        model = await start("bench.agent.model")
        stack.push_async_callback(model.stop)
        tool = await start("bench.agent.tool")
        stack.push_async_callback(tool.stop)
        yield Field(model, int(await model.first_line()), tool, int(await tool.first_line()), stack)


def _json(body: bytes) -> Any:
    return orjson.loads(body)


def _events(body: bytes) -> Iterator[Any]:
    for line in body.split(b"\n"):
        if line.startswith(b"data: ") and line != b"data: [DONE]":
            yield json.loads(line[6:])
