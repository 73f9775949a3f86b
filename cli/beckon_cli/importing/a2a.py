"""The skills of an A2A agent, by its card (https://a2a-protocol.org), as EventTypes.

A skill has no address: every call is a message to the agent, with the skill's id in its metadata.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx
from pydantic import BaseModel, Field, ValidationError
from pydantic.alias_generators import to_camel

from beckon_adapter.a2a import PARAMETERS
from beckon_adapter.rule import check_fixed_url
from beckon_cli.importing.candidates import (
    Credential,
    ImportSource,
    NamedByObjects,
    NoSource,
    Skipped,
    Source,
    bearer_credential,
    choose_by_name,
    join_names,
    object_name,
    source_name,
)
from beckon_cli.importing.documents import BadDescription, UrlDocuments
from beckon_contract.catalogue.annotations import A2A, TIMEOUT
from beckon_contract.yamltext import write_yaml

CARD_PATH = "/.well-known/agent-card.json"
_JSONRPC = "JSONRPC"
_MOST_EXAMPLES = 5


class _CardPart(BaseModel, alias_generator=to_camel, populate_by_name=True):
    pass


class CardInterface(_CardPart):
    """An address of the agent: `protocol_binding` in version 1.0, `transport` in 0.3."""

    url: str
    protocol_binding: str = ""
    protocol_version: str = "1.0"
    transport: str = ""


class CardSkill(_CardPart):
    """A skill as the card describes it."""

    id: str = Field(min_length=1)
    name: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()


class AgentCard(_CardPart):
    """What an import reads of a card, of version 1.0 or 0.3."""

    name: str
    supported_interfaces: tuple[CardInterface, ...] = ()
    url: str = ""
    preferred_transport: str = _JSONRPC
    protocol_version: str = "0.3"
    additional_interfaces: tuple[CardInterface, ...] = ()
    skills: tuple[CardSkill, ...] = ()
    security: tuple[object, ...] = ()
    security_requirements: tuple[object, ...] = ()

    def find_interface(self) -> tuple[str, str] | None:
        """Return the URL of the JSON-RPC interface and its version, 1.0 or 0.3."""
        for each in self.supported_interfaces:
            if each.protocol_binding.upper() == _JSONRPC:
                return each.url, "0.3" if each.protocol_version.startswith("0.") else "1.0"
        if self.url and self.preferred_transport.upper() == _JSONRPC:
            return self.url, "0.3"
        return next(
            ((each.url, "0.3") for each in self.additional_interfaces if each.transport == _JSONRPC), None
        )


@dataclass(frozen=True, slots=True)
class WantedSkills:
    """The options of an import.

    `words` select skills; without any, all are imported. Without a `name` the card's is used. The agent is
    called with `credential`, within `timeout`; the card is read with the bearer `token`.
    """

    words: Sequence[str] = ()
    name: str = ""
    credential: str = ""
    timeout: str = "5m"
    token: str = ""


@dataclass(frozen=True, slots=True)
class ImportedSkill(NamedByObjects):
    """A skill to be written as an EventType. `what` is its id at the agent."""

    what: str
    object_name: str
    description: str
    url: str
    rule: Mapping[str, str]
    tags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The message alone: a card describes no other arguments."""
        return PARAMETERS

    @property
    def annotations(self) -> Mapping[str, str]:
        """The adapter's rule, and how long a call may take."""
        return {TIMEOUT: self.rule["timeout"], A2A: write_yaml(self.rule)}

    @property
    def credential(self) -> Credential:
        """The adapter's credential for the agent."""
        return bearer_credential(self.rule.get("credential", ""))


def find_skills(address: str, wanted: WantedSkills) -> ImportSource[ImportedSkill]:
    """Read an agent's card and return the results of the import. Raises `NoSource`."""
    place, card = _read_card(address, wanted.token)
    interface = card.find_interface()
    if interface is None:
        raise NoSource(f"{place}: the agent has no interface for JSON-RPC, the only binding that is called")
    try:
        url, version = check_fixed_url(urljoin(place, interface[0]), "an agent"), interface[1]
    except ValueError as error:
        raise NoSource(f"{place}: the agent's address cannot be called: {error}") from None
    name = source_name(wanted.name or card.name or "agent")
    results = list(_import_skills(card, name, url, version, wanted))
    return ImportSource(
        importer="a2a",
        noun="skill",
        title=name,
        name=f"a2a-{name}",
        origin=Source(f"the A2A agent {name}", "--name"),
        present=frozenset(skill.id for skill in card.skills),
        results=choose_by_name(results, wanted.words, "skill"),
    )


def _read_card(address: str, token: str) -> tuple[str, AgentCard]:
    """Return the URL of a card and the card; raise `NoSource`."""
    if urlsplit(address).scheme not in ("http", "https"):
        raise NoSource(f"{address!r} is no URL: write https://HOST, or the URL of the agent's card")
    url = address if address.endswith(".json") else address.rstrip("/") + CARD_PATH
    headers = {"authorization": f"Bearer {token}"} if token else {}
    try:
        with httpx.Client(headers=headers) as client:
            documents = UrlDocuments(url, client, lambda _: None)
            return documents.start, AgentCard.model_validate(documents.read(documents.start))
    except BadDescription as error:
        cure = " (read it with --token-file FILE)" if " answers 401" in str(error) else ""
        raise NoSource(f"there is no agent card: {error}{cure}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the document"
        raise NoSource(f"{url} is no agent card: {where}: {first['msg']}") from None


def _import_skills(
    card: AgentCard, name: str, url: str, version: str, wanted: WantedSkills
) -> Iterator[ImportedSkill | Skipped]:
    names: set[str] = set()
    secured = bool(card.security or card.security_requirements) and not wanted.credential
    notes = ("the agent requires credentials: import it with --credential NAME",) if secured else ()
    for skill in card.skills:
        tool_name = _name_skill(skill.id, card.name, name)
        if tool_name in names:
            yield Skipped(skill.id, tool_name, f"another skill is called {tool_name} already", skill.tags)
            continue
        names.add(tool_name)
        rule = {"agent": url, "version": version, "skill": skill.id, "timeout": wanted.timeout}
        if wanted.credential:
            rule["credential"] = wanted.credential
        yield ImportedSkill(skill.id, tool_name, _describe(skill), url, rule, skill.tags, notes)


def _name_skill(skill_id: str, agent: str, name: str) -> str:
    """Return the name of a tool. Agents whose ids begin with their own name have it once."""
    own, skill = object_name(agent), object_name(skill_id)
    if skill == own:
        return name
    return join_names(name, skill.removeprefix(f"{own}-"))


def _describe(skill: CardSkill) -> str:
    """Return the description for a model, with some of the card's examples."""
    description = skill.description.strip() or skill.name.strip() or f"Use the skill {skill.id}."
    examples = "; ".join(each.strip() for each in skill.examples[:_MOST_EXAMPLES] if each.strip())
    return f"{description} For example: {examples}" if examples else description
