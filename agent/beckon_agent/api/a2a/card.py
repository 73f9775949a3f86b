"""The card of an agent: its interfaces, its tools as skills, and the credential it needs.

A card names tools, so it is for callers who may use the agent, with the tools permitted to each.
"""

import json
from collections.abc import Iterator
from importlib.metadata import version

from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)

from beckon_agent.api.a2a.calls import A2aCall
from beckon_agent.core.context import current_principal

_MOST_SKILLS = 100
_INPUT_MODES = ("text/plain", "application/json", "image/*", "audio/wav", "audio/mpeg", "application/pdf")
_BEARER = "bearer"
# The first version of a binding is the one that clients of this version take.
_INTERFACES = (("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3"))


def write_card(call: A2aCall, *, with_push: bool) -> bytes:
    """Return the card as JSON, with the fields of protocol 0.3 beside those of 1.0.

    `with_push` announces push notifications.
    """
    return json.dumps(agent_card_to_dict(_make_card(call, with_push=with_push))).encode()


def _make_card(call: A2aCall, *, with_push: bool) -> AgentCard:
    """Return the card of a call's agent, for its caller."""
    address = f"{call.base_url}/agents/{call.hosted.name}/a2a"
    scheme = HTTPAuthSecurityScheme(scheme="bearer", description="An API key, or a token of the issuer.")
    card = AgentCard(
        name=call.hosted.name,
        description=_describe_agent(call),
        version=version("beckon-agent"),
        supported_interfaces=[
            AgentInterface(url=address, protocol_binding=binding, protocol_version=revision)
            for binding, revision in _INTERFACES
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=with_push),
        default_input_modes=_INPUT_MODES,
        default_output_modes=["text/plain"],
        skills=_list_skills(call),
        security_schemes={_BEARER: SecurityScheme(http_auth_security_scheme=scheme)},
    )
    if current_principal().kind != "anonymous":
        card.security_requirements.append(SecurityRequirement(schemes={_BEARER: StringList()}))
    return card


def _describe_agent(call: A2aCall) -> str:
    names = list(call.hosted.catalogue.current.tools)
    if not names:
        return f"The agent {call.hosted.name} of Beckon. It has no tools now."
    more = len(names) - _MOST_SKILLS
    listed = ", ".join(names[:_MOST_SKILLS]) + (f" and {more} more" if more > 0 else "")
    return f"The agent {call.hosted.name} of Beckon, with the tools {listed}."


def _list_skills(call: A2aCall) -> Iterator[AgentSkill]:
    """Yield the agent itself as a skill, then its first tools."""
    name = call.hosted.name
    description = "Answers a question, and calls the tools of the cluster for it."
    yield AgentSkill(id=name, name=name, description=description, tags=["agent"])
    for tool in list(call.hosted.catalogue.current.tools.values())[: _MOST_SKILLS - 1]:
        yield AgentSkill(
            id=f"{name}.{tool.name}", name=tool.name, description=tool.description or tool.name, tags=["tool"]
        )
