"""An Agent resource, or the settings alone, as an agent that can run."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from beckon_agent.agents.keys import Key, KeyRing, NoModel, SecretEntry
from beckon_agent.agents.model_pool import ModelPool, ModelSpec, SharedModel
from beckon_agent.agents.registry import AgentHandle, UnavailableAgent
from beckon_agent.core.run_types import Agent, Limits
from beckon_agent.tools.catalogue import CatalogueSource
from beckon_agent.tools.select import Chooser
from beckon_contract.knative.eventtypes import EventType
from beckon_contract.kubernetes_objects import Resource, from_object
from beckon_contract.resources.agent_resource import AgentLimits, AgentResource, InvalidAgent, read_agent
from beckon_contract.resources.tools import ToolSelector


@dataclass(frozen=True, slots=True)
class ConfiguredAgent:
    """The agent of the service's own settings. Other Agents take from it the values they leave out."""

    agent: Agent
    model: ModelSpec

    def name_of(self, namespace: str, name: str) -> str:
        """Return the name of an agent in the API.

        It is the bare name in the service's own namespace, else NAMESPACE/NAME.
        """
        return name if namespace == self.agent.namespace else f"{namespace}/{name}"

    def place_of(self, name: str) -> tuple[str, str]:
        """Return namespace and name of an agent from its API name."""
        namespace, slash, bare = name.partition("/")
        return (namespace, bare) if slash else (self.agent.namespace, name)


def agent_of(written: AgentResource, own: ConfiguredAgent) -> Agent:
    """Return the agent of an Agent resource, for runs."""
    prompt = own.agent.system_prompt if written.system_prompt is None else written.system_prompt
    limits = _merge_limits(written.limits, own.agent.limits)
    pinned = own.agent.pinned if written.pinned is None else written.pinned
    return Agent(
        written.name,
        written.namespace,
        prompt,
        limits,
        written.terms,
        pinned,
        written.output_schema,
        written.publish_prompt,
    )


def wanted_key(written: AgentResource) -> SecretEntry | None:
    """Return the key named by an Agent."""
    secret = written.model.api_key
    return None if secret is None else SecretEntry(written.namespace, secret)


def model_of(written: AgentResource, own: ConfiguredAgent, keys: KeyRing) -> ModelSpec | NoModel | None:
    """Return the model of an Agent, or the reason it has none.

    `None` while its key is not read yet. The service's own key goes to the service's own server and to no
    other: an Agent with a server and no Secret is used without a key.
    """
    reference = written.model
    if reference.base_url is None:
        model = replace(
            own.model,
            name=reference.name or own.model.name,
            dialect=reference.dialect or own.model.dialect,
            text_calls=written.text_calls or own.model.text_calls,
        )
        return model if model.base_url else NO_SERVER
    text_calls = written.text_calls or own.model.text_calls
    model = ModelSpec(reference.base_url, reference.name or "", reference.dialect or "auto", "", text_calls)
    wanted = wanted_key(written)
    if wanted is None:
        return model
    key = keys.find_key(wanted)
    return replace(model, api_key=key.value) if isinstance(key, Key) else key


NO_SERVER = NoModel(
    "NoModel", "no model is configured; set spec.model.baseURL, or OPENAI_BASE_URL of the agent service"
)


def _merge_limits(written: AgentLimits, own: Limits) -> Limits:
    return Limits(
        steps=written.steps or own.steps,
        seconds=written.seconds or own.seconds,
        tokens=written.tokens or own.tokens,
        parallel_calls=written.parallel_calls or own.parallel_calls,
        result_chars=written.result_chars or own.result_chars,
        call_timeout=written.call_timeout or own.call_timeout,
        tools=written.tools or own.tools,
        late_seconds=own.late_seconds,
        calls_per_turn=written.calls_per_turn or own.calls_per_turn,
        repeated_calls=written.repeated_calls or own.repeated_calls,
    )


Place = tuple[str, str]
"""The namespace and the name of an Agent."""

INVALID = "InvalidSpec"

_KEY_NOT_READ = NoModel("KeyNotRead", "the key of its model has not been read yet")


@dataclass(slots=True)
class AgentEntry:
    """One Agent resource, its stored status, and its handle.

    `status` is the one the API server has. `trouble` is the reason if the Agent cannot be served as
    written; a change with a key not read yet is served as it was before.
    """

    uid: str
    generation: int
    written: AgentResource | None
    status: Mapping[str, Any]
    trouble: NoModel | None = None
    tools: CatalogueSource | None = None
    model: SharedModel | None = None
    hosted: AgentHandle | None = None


class ToolChoice(Protocol):
    """The tools of a namespace, as agents choose among them."""

    def own(self, namespace: str) -> CatalogueSource:
        """Return the tools of the service's own agent, kept up to date."""
        ...

    def chosen(self, namespace: str, selector: ToolSelector) -> CatalogueSource:
        """Return the tools of a selector, kept up to date while referenced."""
        ...

    def chooser(self, namespace: str, pinned: Sequence[str]) -> Chooser:
        """Return the chooser of the tools declared in a request."""
        ...

    def event_types(self, namespace: str) -> Sequence[EventType]:
        """Return the EventTypes of a namespace that are no tools."""
        ...


@dataclass(frozen=True, slots=True)
class Parts:
    """The shared parts of all agents."""

    own: ConfiguredAgent
    tools: ToolChoice
    models: ModelPool
    keys: KeyRing
    where: Callable[[Place], str]
    """Says where to read what keeps an Agent from being served."""


class Agents:
    """All Agents, and the agent of the service's settings.

    `changed` is called with the place of each changed Agent.
    """

    def __init__(self, parts: Parts, changed: Callable[[Place], None]) -> None:
        """Raise `ValueError` for an unusable model in the service's settings."""
        self._parts = parts
        self._changed = changed
        self._entries: dict[Place, AgentEntry] = {}
        self._own = self._host_own()

    @property
    def default(self) -> str:
        """The name of the service's own agent."""
        return self._parts.own.agent.name

    def find(self, name: str) -> AgentHandle | UnavailableAgent | None:
        """Return the agent of this name.

        An Agent resource takes precedence over the service's own settings.
        """
        place = self._parts.own.place_of(name)
        entry = self._entries.get(place)
        if entry is None:
            return self._own if place == self._own_place else None
        if entry.hosted is not None:
            return entry.hosted
        reason = entry.trouble.reason if entry.trouble else _KEY_NOT_READ.reason
        return UnavailableAgent(name, reason, self._parts.where(place))

    def hosted(self) -> Sequence[AgentHandle]:
        """Return the agents taking requests, the service's own first."""
        agents = [entry.hosted for entry in self._entries.values() if entry.hosted is not None]
        if self._own_place not in self._entries and isinstance(self._own, AgentHandle):
            agents.append(self._own)
        return sorted(agents, key=lambda hosted: (hosted.name != self.default, hosted.name))

    def list_places(self, namespace: str | None = None) -> list[Place]:
        """Return the places of the Agents, in one namespace or in all."""
        return [place for place in self._entries if namespace in (None, place[0])]

    def find_entry(self, place: Place) -> AgentEntry | None:
        """Return the entry of an Agent resource."""
        return self._entries.get(place)

    def wanted_keys(self) -> Collection[SecretEntry]:
        """Return the keys named by Agents."""
        written = [entry.written for entry in self._entries.values() if entry.written is not None]
        return {wanted for one in written if (wanted := wanted_key(one)) is not None}

    def put(self, document: Mapping[str, Any]) -> None:
        """Add or replace an Agent from the API server."""
        self.take_resource(from_object(document))

    def take_resource(self, resource: Resource) -> None:
        """Add or replace an Agent. With the same uid and generation, only its status is replaced."""
        place = resource.namespace, resource.name
        entry = self._entries.get(place)
        if entry is not None and (entry.uid, entry.generation) == (resource.uid, resource.generation):
            entry.status = resource.status
            return
        self._entries[place] = self._read_resource(resource, entry)
        self._settle_agent(place)

    def drop(self, namespace: str, name: str) -> None:
        """Forget an Agent; its runs in progress continue."""
        entry = self._entries.pop((namespace, name), None)
        if entry is not None and entry.model is not None:
            entry.model.release_model()
        self._changed((namespace, name))

    def key_changed(self, wanted: SecretEntry) -> None:
        """Serve the Agents naming a key with its new result."""
        for place, entry in list(self._entries.items()):
            if entry.written is not None and wanted_key(entry.written) == wanted:
                self._settle_agent(place)

    def places_of_model(self, spec: ModelSpec) -> list[Place]:
        """Return the places of the Agents using a model."""
        models = {place: entry.model for place, entry in self._entries.items()}
        return [place for place, model in models.items() if model is not None and model.spec == spec]

    @property
    def _own_place(self) -> Place:
        return self._parts.own.agent.namespace, self._parts.own.agent.name

    def _host_own(self) -> AgentHandle | UnavailableAgent:
        own = self._parts.own
        if not own.model.base_url:
            return UnavailableAgent(own.agent.name, NO_SERVER.reason, NO_SERVER.message)
        model = self._parts.models.take_model(own.model)
        tools = self._parts.tools.own(own.agent.namespace)
        return self._make_handle(own.agent.name, own.agent, model, tools)

    def _read_resource(self, resource: Resource, before: AgentEntry | None) -> AgentEntry:
        entry = AgentEntry(resource.uid, resource.generation, None, resource.status)
        try:
            entry.written = read_agent(resource)
        except InvalidAgent as error:
            entry.trouble = NoModel(INVALID, str(error))
        else:
            entry.tools = self._parts.tools.chosen(resource.namespace, entry.written.tools)
        if before is not None:
            entry.model, entry.hosted = before.model, before.hosted
        return entry

    def _settle_agent(self, place: Place) -> None:
        """Serve an Agent with the current state of its model.

        It is not served without a model; while its key is not read yet, it is served as before.
        """
        entry = self._entries[place]
        if entry.written is None or entry.tools is None:
            self._serve_agent(entry, None, None)
        else:
            model = model_of(entry.written, self._parts.own, self._parts.keys)
            if model is None:
                entry.trouble = _KEY_NOT_READ
            elif isinstance(model, NoModel):
                entry.trouble = model
                self._serve_agent(entry, None, None)
            else:
                self._serve_with(entry, entry.written, entry.tools, model)
        self._changed(place)

    def _serve_with(
        self, entry: AgentEntry, written: AgentResource, tools: CatalogueSource, spec: ModelSpec
    ) -> None:
        try:
            model = self._parts.models.take_model(spec)
        except ValueError as error:
            entry.trouble = NoModel("InvalidModel", str(error))
            self._serve_agent(entry, None, None)
            return
        entry.trouble = None
        name = self._parts.own.name_of(written.namespace, written.name)
        agent = agent_of(written, self._parts.own)
        self._serve_agent(entry, model, self._make_handle(name, agent, model, tools))

    def _make_handle(
        self, name: str, agent: Agent, model: SharedModel, tools: CatalogueSource
    ) -> AgentHandle:
        choice = self._parts.tools
        return AgentHandle(
            name,
            agent,
            model,
            tools,
            model.hold_open,
            choice.chooser(agent.namespace, agent.pinned),
            lambda: choice.event_types(agent.namespace),
        )

    def _serve_agent(self, entry: AgentEntry, model: SharedModel | None, hosted: AgentHandle | None) -> None:
        before, entry.model, entry.hosted = entry.model, model, hosted
        if before is not None:
            before.release_model()
