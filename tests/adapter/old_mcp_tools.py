"""An MCP server of the revision 2025-06-18 over its standard streams, which knows nothing of later ones."""

import json
import sys

TOOLS = [
    {"name": name, "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
    for name in ("greet", "choose")
]
FORM = {
    "message": "Which size?",
    "requestedSchema": {"type": "object", "properties": {"size": {"type": "integer"}}},
}


def request_form() -> str:
    """Request input of the client, in the middle of a call; return its answer."""
    request = {"jsonrpc": "2.0", "id": "form", "method": "elicitation/create", "params": FORM}
    sys.stdout.write(json.dumps(request) + "\n")
    sys.stdout.flush()
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "form":
            return json.dumps(message.get("result") or "an error")
    return "no answer"


def answer(method: str, params: dict[str, object]) -> dict[str, object] | None:
    match method:
        case "initialize":
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "old", "version": "1"},
            }
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            arguments = params.get("arguments")
            assert isinstance(arguments, dict)
            if params["name"] == "choose":
                return {"content": [{"type": "text", "text": request_form()}]}
            return {"content": [{"type": "text", "text": f"hello {arguments.get('name')}"}]}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params") or {})
        reply = (
            {"error": {"code": -32601, "message": "Method not found"}}
            if result is None
            else {"result": result}
        )
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}) + "\n")
        sys.stdout.flush()
