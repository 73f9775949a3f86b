"""What one run costs at each protocol: the same questions to one agent, with a stored run where it has one.

All rows are requests to the same agent with its store in SQLite. A round measures every protocol, one after
the other, and a ratio is that of the figures of one round to chat completions, which are not stored there.
The table has the medians.
"""

from collections.abc import Callable, Mapping
from secrets import token_hex
from typing import Any

from bench.agent import measure
from bench.agent.contestants import COMPLETIONS, RESPONSES, Contestant, Field, Wire
from bench.agent.measure import Amount, compute_ratios, rotate
from bench.cluster.table import show

_MCP = "2026-07-28"
_META = "io.modelcontextprotocol"
_A2A_HEADERS = (("a2a-version", "1.0"),)
_MCP_HEADERS = (
    ("accept", "application/json, text/event-stream"),
    ("mcp-protocol-version", _MCP),
    ("mcp-method", "tools/call"),
    ("mcp-name", "run_agent"),
)


def _stored(make_body: Callable[[str, bool], dict[str, object]]) -> Callable[[str, bool], dict[str, object]]:
    return lambda question, stream: {**make_body(question, stream), "store": True}


def _rpc(method: str, params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _a2a_body(question: str, stream: bool) -> dict[str, object]:
    message = {"messageId": token_hex(8), "role": "ROLE_USER", "parts": [{"text": question}]}
    return _rpc("SendStreamingMessage" if stream else "SendMessage", {"message": message})


def _a2a_text(artifact: Mapping[str, Any]) -> str:
    return "".join(part.get("text", "") for part in artifact["parts"])


def _a2a_update(event: Mapping[str, Any]) -> str:
    update = event["result"].get("artifactUpdate")
    return _a2a_text(update["artifact"]) if update else ""


def _mcp_body(question: str, _: bool) -> dict[str, object]:
    meta = {f"{_META}/protocolVersion": _MCP, f"{_META}/clientCapabilities": {}}
    return _rpc("tools/call", {"name": "run_agent", "arguments": {"message": question}, "_meta": meta})


def _agui_body(question: str, _: bool) -> dict[str, object]:
    message = {"id": token_hex(8), "role": "user", "content": question}
    return {"threadId": token_hex(8), "runId": token_hex(8), "messages": [message]}


_STORED_COMPLETIONS = Wire(
    COMPLETIONS.path, _stored(COMPLETIONS.make_body), COMPLETIONS.whole, COMPLETIONS.piece
)
_A2A = Wire(
    "/agents/beckon/a2a",
    _a2a_body,
    lambda document: "".join(map(_a2a_text, document["result"]["task"]["artifacts"])),
    _a2a_update,
    _A2A_HEADERS,
)
_AGENT_TOOL = Wire(
    "/mcp",
    _mcp_body,
    lambda document: str(document["result"]["content"][0]["text"]),
    str,
    _MCP_HEADERS,
)
_AGUI = Wire(
    "/ag-ui",
    _agui_body,
    str,
    lambda event: str(event["delta"]) if event["type"] == "TEXT_MESSAGE_CONTENT" else "",
)

PLAIN = "chat completions"
FACES: dict[str, tuple[Wire, bool]] = {
    PLAIN: (COMPLETIONS, False),
    "chat completions, streamed": (COMPLETIONS, True),
    "chat completions, stored": (_STORED_COMPLETIONS, False),
    "Responses, stored": (RESPONSES, False),
    "Responses, stored, streamed": (RESPONSES, True),
    "A2A SendMessage": (_A2A, False),
    "A2A SendStreamingMessage": (_A2A, True),
    "MCP tools/call of run_agent": (_AGENT_TOOL, False),
    "AG-UI, streamed": (_AGUI, True),
}
"""Each row: how it is requested, and whether its answer is streamed."""


async def compare(field: Field, amount: Amount) -> int:
    """Measure every protocol, print the table; return how many answers were wrong."""
    agent = await field.storing({"BECKON_MCP_AGENT_TOOL": "true"})
    found = {name: measure.Runs() for name in FACES}
    for name in FACES:
        await _run(name, agent, amount.at_once, amount.at_once, measure.Runs())
    for number in range(amount.rounds):
        for name in rotate(list(FACES), number):
            await _run(name, agent, amount.runs, amount.at_once, found[name])
    rows = [_row(name, found) for name in FACES]
    title = f"CPU of a run of two turns with one tool call, {amount.at_once} at once, in milliseconds"
    show(title, ["protocol", "own", f"of {PLAIN}", "path", "p50 ms", "wrong"], rows)
    return sum(runs.wrong for runs in found.values())


async def _run(name: str, agent: Contestant, total: int, at_once: int, into: measure.Runs) -> None:
    wire, stream = FACES[name]
    one = Contestant(name, agent.port, wire, agent.path)
    await measure.runs(one, total, at_once, into, stream=stream)


def _row(name: str, found: Mapping[str, measure.Runs]) -> list[str]:
    own, _ = compute_ratios(found[PLAIN], found[name])
    median = found[name].median
    return [
        name,
        f"{median.own:.2f}",
        f"{own:.2f}",
        f"{median.path:.2f}",
        f"{median.p50:.1f}",
        str(found[name].wrong),
    ]
