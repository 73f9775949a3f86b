"""Five thousand tools around those of the platform, and what of them a model was sent."""

from beckon_agent.core.run_types import Limits
from beckon_contract.catalogue.builder import Catalogue
from beckon_contract.resources.tools import Tool
from tests.agent.running_agent import RunningAgent, Setup
from tests.agent.scripted_model import ReceivedRequest

MANY = 5_000
LIMIT = 64
SETUP = Setup(limits=Limits(call_timeout=10, tools=LIMIT))

_VERBS = ("archive", "close", "copy", "create", "export", "find", "list", "merge", "open", "rename")
_NOUNS = ("account", "booking", "contract", "delivery", "employee", "invoice", "meeting", "order")


def filler(number: int) -> Tool:
    """Return a tool that no one serves."""
    verb, noun = _VERBS[number % len(_VERBS)], _NOUNS[number // 10 % len(_NOUNS)]
    name = f"s{number // 10}_{verb}_{noun}"
    return Tool(
        name=name,
        namespace="default",
        event_type=name.replace("_", "."),
        type=f"s{number // 10}.{noun}.{verb}",
        source=None,
        description=f"{verb.title()} the {noun} of division {number // 10}.",
        parameters={"type": "object", "properties": {noun: {"type": "string"}}, "required": [noun]},
        parameters_from="spec.schemaData",
        routes=("t",),
    )


def surround(agent: RunningAgent, many: int = MANY) -> None:
    """Give an agent so many tools in all, those of the platform among them."""
    tools = dict(agent.catalogue.current.tools)
    for number in range(many - len(tools)):
        tools.setdefault(filler(number).name, filler(number))
    agent.catalogue.current = Catalogue(dict(sorted(tools.items())))


def sent(request: ReceivedRequest) -> list[str]:
    """Return the names of the tools of a request."""
    return [tool["function"]["name"] for tool in request.body["tools"]]
