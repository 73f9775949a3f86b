"""The tools that ship, each in a module of its own with a `build` function that takes the settings.

`SHIPPED` maps the name of each tool's Knative Service to where it is built; nothing is imported
until a tool is called, so that each process loads what it serves and no more.
"""

from collections.abc import Mapping
from types import MappingProxyType

SHIPPED: Mapping[str, str] = MappingProxyType(
    {
        "calculator": "beckon_tools.shipped.calculator:build",
        "current-time": "beckon_tools.shipped.clock:build",
        "get-current-weather": "beckon_tools.shipped.weather:build",
        "sql": "beckon_tools.shipped.sql:build",
        "text-to-speech": "beckon_tools.shipped.speech:build",
        "track": "beckon_tools.shipped.quotes:build",
    }
)

# dev.local is never resolved to a digest by Knative Serving: right for an image built on the spot.
DEFAULT_IMAGE = "dev.local/beckon-tools:0.1.0"
