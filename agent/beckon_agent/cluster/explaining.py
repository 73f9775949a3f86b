"""What a Tool resource says of its EventType, as the page shows it."""

from collections.abc import Mapping

from beckon_agent.catalogue.explained import Explanation, Way, delivery_words, route
from beckon_contract.conditions import Condition, condition
from beckon_contract.resources import Resource
from beckon_contract.tool_resources import ANSWERING, CONDITIONS
from beckon_contract.ways import read_ways


def explanation(tool: Resource) -> Explanation:
    """Return the explanation that a Tool is: the operator has followed its Triggers, and says where to."""
    found = (condition(tool.status, name) for name in (*CONDITIONS[:-1], ANSWERING, CONDITIONS[-1]))
    conditions = [one for one in found if isinstance(one, Condition)]
    kind, broker, address = (_text(tool.spec, name) for name in ("type", "broker", "address"))
    direct = tool.spec.get("dispatch") == "direct"
    reference = tool.spec.get("reference")
    service = _text(reference, "name") if isinstance(reference, Mapping) else ""
    ways = [Way("", service=service, address=address)] if direct else _ways(tool)
    return Explanation(
        tool.namespace,
        tool.name,
        kind,
        _text(tool.spec, "description"),
        conditions,
        route(tool.name, kind, broker or "default", ways, conditions, direct=direct),
    )


def _ways(tool: Resource) -> list[Way]:
    """Return the Triggers of a tool; of one that an older operator wrote, the names alone."""
    found = [
        Way(
            one.trigger,
            one.filter,
            one.service(tool.namespace),
            one.address,
            delivery=delivery_words(one.retries, one.dead_letters),
        )
        for one in read_ways(tool.status)
    ]
    triggers = tool.spec.get("triggers")
    if found or not isinstance(triggers, list):
        return found
    return [Way(name) for name in triggers if isinstance(name, str)]


def _text(values: Mapping[str, object], name: str) -> str:
    value = values.get(name)
    return value if isinstance(value, str) else ""
