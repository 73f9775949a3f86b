"""What MCP costs an agent without MCP clients."""

import subprocess
import sys


def test_an_agent_without_mcp_clients_does_not_load_the_sdk() -> None:
    program = "import sys, beckon_agent.api.mcp.server; sys.exit('mcp' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
