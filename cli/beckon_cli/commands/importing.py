"""`beckon import`: tools made from APIs and MCP servers.

Each importer is loaded only when its command runs, so its help text is here. The steps common to all
importers are in `importing_flow`.
"""

from cyclopts import App

_OPENAPI_HELP = """Make EventTypes, Triggers and rules for the HTTP adapter of an API's OpenAPI description.

For instance:

```
beckon import openapi petstore.yaml --select "GET /pets/**" --output manifests
```

Swagger 2 and OpenAPI 3, YAML or JSON. What cannot be a tool is skipped with its reason. Importing
again replaces the files that it has written before, and no others.
"""
_MCP_HELP = """Make EventTypes and Triggers of an MCP server's tools; their calls go through the bridge.

For instance:

```
beckon import mcp https://mcp.example.com/mcp --output manifests
beckon import mcp --name time --into time -- uvx mcp-server-time
```

The second writes an image for a cluster as well. What cannot be a tool is skipped with its reason.
Importing again replaces the files that it has written before, and no others.
"""

import_tools = App(name="import", help="Make tools of what exists already, without code.")
import_tools.command("beckon_cli.commands.importing_openapi:openapi", name="openapi", help=_OPENAPI_HELP)
import_tools.command("beckon_cli.commands.importing_mcp:mcp", name="mcp", help=_MCP_HELP)
