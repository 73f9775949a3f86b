"""An MCP server of the revision 2025-06-18 over its standard streams, which knows nothing of later ones."""

import json
import sys

TOOLS = [{"name": "greet", "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}]


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
