"""`beckon manifest`: the EventType, Trigger and Service of an SDK tool."""

from pathlib import Path

from beckon_cli.errors import CommandError
from beckon_tools.command import find_tool
from beckon_tools.errors import UsageError
from beckon_tools.manifests import Placement, save_manifests, write_manifests
from beckon_tools.settings import Settings
from beckon_tools.shipped import DEFAULT_IMAGE


def manifest(
    tool: str,
    /,
    *,
    image: str = DEFAULT_IMAGE,
    namespace: str | None = None,
    broker: str = "default",
    dead_letters: str = "",
    output: Path | None = None,
) -> None:
    """Print a tool's EventType, Trigger and Knative Service.

    For instance: beckon manifest order_status:order_status | kubectl apply -f -

    Parameters
    ----------
    tool
        MODULE:FUNCTION, looked for in this folder first; or the name of a tool that ships.
    image
        The container image of the Service; else Beckon's own, with the tools that ship.
    namespace
        The namespace; without this, that of kubectl's context.
    broker
        The Broker of the Trigger; else default.
    dead_letters
        The URL of a dead-letter sink, for a Broker that has none of its own.
    output
        Write a file each into this folder, instead of printing.
    """
    try:
        placement = Placement(tool, image, broker, namespace, dead_letters)
        manifests = write_manifests(find_tool(tool, Settings.model_construct()), placement)
        if output is None:
            print("".join(manifests.values()), end="")
        else:
            save_manifests(manifests, output)
    except UsageError as error:
        raise CommandError(str(error), status=2) from None
