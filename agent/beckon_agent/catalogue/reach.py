"""Which tools this agent has a way to call."""

from dataclasses import replace

from beckon_contract.catalogue import Catalogue
from beckon_contract.options import DISPATCH
from beckon_contract.tools import Refusal, Tool


def reachable(catalogue: Catalogue) -> Catalogue:
    """Refuse the tools that this agent has no way to call, so that no model is offered one."""
    direct = [tool for tool in catalogue.tools.values() if tool.dispatch == "direct"]
    if not direct:
        return catalogue
    tools = {name: tool for name, tool in catalogue.tools.items() if tool.dispatch != "direct"}
    return replace(catalogue, tools=tools, refusals=(*catalogue.refusals, *map(_no_direct_way, direct)))


def _no_direct_way(tool: Tool) -> Refusal:
    return Refusal(
        tool.event_type,
        tool.namespace,
        "DirectNotSupported",
        f"metadata.annotations[{DISPATCH}]",
        "this agent calls tools through a Broker only; remove the annotation, "
        f"and write a Trigger that passes the type {tool.type!r} to the service",
        tool.origin,
    )
