"""The agent as a tool of its own MCP address: a message starts a run, and the answer is the result."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.tools.explain import Explanation
from beckon_contract.catalogue.builder import Catalogue
from beckon_contract.resources.tools import Tool

RUN_AGENT = "run_agent"
_DAY = 86_400.0
_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "message": {"type": "string", "minLength": 1, "description": "The question or task for the agent."}
    },
    "required": ["message"],
    "additionalProperties": False,
}


class AgentCatalogue:
    """The tools of an agent, and the agent as one of them.

    A tool of the agent's own with the same name takes its place.
    """

    def __init__(self, agent: AgentHandle) -> None:
        self.agent = agent
        catalogue = agent.catalogue.current
        self.has_agent = RUN_AGENT not in catalogue.tools
        tools = {RUN_AGENT: _agent_tool(agent), **catalogue.tools}
        self.current: Catalogue = replace(catalogue, tools=dict(sorted(tools.items())))

    def explain(self, namespace: str, event_type: str) -> Explanation | None:
        """Return the explanation of an EventType, `None` for an unknown one."""
        return self.agent.catalogue.explain(namespace, event_type)


def with_agent_tool(agent: AgentHandle) -> AgentHandle:
    """Return an agent that has itself as a tool, for one request."""
    return replace(agent, catalogue=AgentCatalogue(agent))


def agent_behind(hosted: AgentHandle, name: str) -> AgentHandle | None:
    """Return the agent that a tool runs, `None` for any other tool."""
    catalogue = hosted.catalogue
    if isinstance(catalogue, AgentCatalogue) and catalogue.has_agent and name == RUN_AGENT:
        return catalogue.agent
    return None


def _agent_tool(agent: AgentHandle) -> Tool:
    return Tool(
        name=RUN_AGENT,
        namespace=agent.agent.namespace,
        event_type=agent.name,
        type="",
        source=None,
        description=f"Send a message to the agent {agent.name}. It may call tools, and answers with a text.",
        parameters=_PARAMETERS,
        parameters_from="the agent",
        timeout=_DAY,  # so its run is a task
        returns=agent.agent.output_schema,
    )
