"""The objects that make a catalogue: Brokers, and an EventType with its Trigger for each tool.

Fifty tools share a Broker. All the Triggers of a Broker are subscribers of one
InMemoryChannel, an object that Knative writes anew for each of them, so that a thousand on
one Broker are slow and five thousand exceed what etcd takes.
"""

import orjson

from bench.cluster.beckon import Manifest

TOOLS_A_BROKER = 50
NEW_TYPES = "bench.new."
_TYPES = "bench.tool."

_PARAMETERS = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "The city, with its country where the name is ambiguous"},
        "days": {"type": "integer", "minimum": 1, "maximum": 14, "description": "How many days ahead"},
        "unit": {
            "type": "string",
            "enum": ["celsius", "fahrenheit"],
            "description": "The unit of the answer",
        },
    },
    "required": ["city"],
    "additionalProperties": False,
}
_DESCRIPTION = "Tell the weather of the next days in a city, as the service {name} knows it."
_TOOL = {"ref": {"apiVersion": "v1", "kind": "Service", "name": "tool"}}


def brokers(tools: int, replies_url: str, *, shared: bool = False, broker_class: str = "") -> list[Manifest]:
    """Return the Brokers for so many tools, each with its Trigger for replies.

    With `shared`, each also has the one Trigger that passes the calls of all its tools. Without a class they
    have the cluster's default class.
    """
    found = []
    for number in range(-(-tools // TOOLS_A_BROKER)):
        name = _broker(number * TOOLS_A_BROKER)
        # As in deploy/540-broker.yaml.
        delivery = {
            "retry": 5,
            "backoffPolicy": "exponential",
            "backoffDelay": "PT0.2S",
            "deadLetterSink": {"uri": f"{replies_url}/dead-letters"},
        }
        broker = _object("eventing.knative.dev/v1", "Broker", name, {"delivery": delivery})
        if broker_class:
            broker["metadata"]["annotations"] = {"eventing.knative.dev/broker.class": broker_class}
        found.append(broker)
        found.append(_trigger(f"{name}-replies", name, {"replyid": ""}, {"uri": f"{replies_url}/replies"}))
        if shared:
            found.append(_prefix_trigger(f"{name}-tools", name, _TYPES))
    return found


def tool(number: int) -> list[Manifest]:
    """Return the EventType and the Trigger of one tool of the catalogue."""
    name = name_of(number)
    return _tool(name, f"{_TYPES}{number:05}", _broker(number))


def event_type(number: int) -> list[Manifest]:
    """Return the EventType of one such tool, for a Broker whose tools share a Trigger."""
    return tool(number)[:1]


def new_tool(number: int) -> list[Manifest]:
    """Return a tool whose name comes before all others: an agent sends a limited number."""
    name = new_name(number)
    return _tool(name, f"{NEW_TYPES}{number:05}", _broker(0))


def new_event_type(number: int) -> list[Manifest]:
    """Return such a tool without a Trigger of its own: `trigger_for_new` passes its calls."""
    return new_tool(number)[:1]


def trigger_for_new() -> Manifest:
    """Return a Trigger that passes the calls of all new tools."""
    return _prefix_trigger("for-new-tools", _broker(0), NEW_TYPES)


def new_name(number: int) -> str:
    """Return the name of a new tool's EventType."""
    return f"a-new-{number:05}"


def name_of(number: int) -> str:
    """Return the name of the EventType of one tool of the catalogue."""
    return f"tool-{number:05}"


def declared_name(name: str) -> str:
    """Return the name by which a model knows the tool of an EventType."""
    return name.replace("-", "_")


def _broker(number: int) -> str:
    return f"broker-{number // TOOLS_A_BROKER:03}"


def _tool(name: str, kind: str, broker: str) -> list[Manifest]:
    spec = {
        "type": kind,
        "description": _DESCRIPTION.format(name=name),
        "reference": {"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "name": broker},
    }
    event_type = _object("eventing.knative.dev/v1beta2", "EventType", name, spec)
    event_type["metadata"]["annotations"] = {"beckon.dev/parameters": orjson.dumps(_PARAMETERS).decode()}
    return [event_type, _trigger(name, broker, {"type": kind}, _TOOL)]


def _trigger(name: str, broker: str, attributes: dict[str, str], subscriber: Manifest) -> Manifest:
    spec = {"broker": broker, "filter": {"attributes": attributes}, "subscriber": subscriber}
    return _object("eventing.knative.dev/v1", "Trigger", name, spec)


def _prefix_trigger(name: str, broker: str, prefix: str) -> Manifest:
    trigger = _trigger(name, broker, {}, _TOOL)
    del trigger["spec"]["filter"]
    trigger["spec"]["filters"] = [{"prefix": {"type": prefix}}]
    return trigger


def _object(api_version: str, kind: str, name: str, spec: Manifest) -> Manifest:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}
