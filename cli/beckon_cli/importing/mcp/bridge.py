"""The bridge Service of an MCP server started by a command.

It takes the calls of the server's tools.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from beckon_cli.importing.candidates import Service
from beckon_cli.importing.manifests import metadata_of
from beckon_cli.importing.yamltext import write_manifest
from beckon_contract.options import LOCAL_COMMAND
from beckon_tools.shipped import DEFAULT_IMAGE

_NOTE = (
    "The bridge to the MCP server, which it runs. The local platform starts it by the annotation; for a "
    "cluster, import with --into, which writes an image as well."
)


@dataclass(frozen=True, slots=True)
class Bridge:
    """A bridge, identified by the name of its server.

    A `plain` one is a Kubernetes Service, not a Knative Service. `broker` delivers the calls of its tools.
    """

    server: str
    namespace: str = ""
    plain: bool = False
    broker: str = "default"

    @property
    def service(self) -> str:
        """The name of its Service."""
        return service_name(self.server)


def service_name(server: str) -> str:
    """Return the name of a server's bridge Service."""
    return f"mcp-{server}"


def local_service(bridge: Bridge, command: Sequence[str]) -> Service:
    """Return the bridge Service for the local platform.

    No image has the server's command.
    """
    words = ["python", "-m", "beckon_adapter", "--mcp", bridge.server, "--", *command]
    document = {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": {
            **metadata_of(bridge.service, bridge.namespace),
            "annotations": {LOCAL_COMMAND: shlex.join(words)},
        },
        "spec": {"template": {"spec": {"containers": [{"image": DEFAULT_IMAGE, "command": words}]}}},
    }
    return Service(bridge.service, text=write_manifest(document, [_NOTE]))


def cluster_service(bridge: Bridge) -> Service:
    """Return the bridge Service for a cluster, without its manifest.

    The project has the manifest in a file of its own.
    """
    return Service(bridge.service, "v1" if bridge.plain else "serving.knative.dev/v1")
