"""The agents of a cluster, followed through the API server.

Every replica writes the status of Agents without coordination: all compute the same status, and an
unchanged one is not written again. If replicas differ, because only one of them reaches a model, each
writes once per period, and never because another did.
"""

import asyncio
import binascii
import logging
import random
from base64 import b64decode
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from beckon_agent.agents.configured import AgentEntry, Agents, ConfiguredAgent, Parts, Place
from beckon_agent.agents.keys import KeyRing, NoAnswer, NoSecret, SecretEntry
from beckon_agent.agents.kubernetes_status import NOT_PROBED, Probes, is_different, status_of
from beckon_agent.agents.kubernetes_tools import AnsweringReporter, ToolStore
from beckon_agent.agents.model_pool import ModelPool, ModelSpec
from beckon_agent.agents.registry import AgentHandle, UnavailableAgent
from beckon_contract.knative.eventtypes import GROUP
from beckon_contract.resources import agent_resource, tools
from beckon_contract.resources.tools import Tool
from beckon_sources.api_client import ApiClient
from beckon_sources.api_types import Collection as Objects
from beckon_sources.api_types import Document, Refused, Unreachable, object_path
from beckon_sources.reflector import Reflector
from beckon_sources.watch_status import Contact

logger = logging.getLogger(__name__)

_SERVED = "v1beta2"  # the version of EventTypes that every supported Knative serves
_GATHER = (0.1, 0.6)  # seconds; many Tools often change at once, and replicas should not write at once


class WriteStatus(Protocol):
    """Writes the status of an Agent, and returns the new Agent."""

    async def __call__(self, place: Place, status: Mapping[str, Any]) -> Document:
        """Raise `Refused` or `Unreachable`."""
        ...


class StatusKeeper:
    """Writes the status of Agents after changes, and periodically.

    `look_at` names the changed Agents. `wanted` returns the status an Agent should have; `period` is in
    seconds.
    """

    def __init__(
        self,
        write: WriteStatus,
        agents: Agents,
        wanted: Callable[[AgentEntry], dict[str, Any]],
        period: float,
    ) -> None:
        self._write = write
        self._agents = agents
        self._wanted = wanted
        self._period = period
        self._due: set[Place] = set()
        self._wake = asyncio.Event()
        self._refused: set[str] = set()

    def look_at(self, places: Iterable[Place]) -> None:
        """Mark the status of these Agents for a check."""
        self._due.update(places)
        if self._due:
            self._wake.set()

    async def write_until_cancelled(self) -> None:
        """Write until cancelled."""
        while True:
            pause = self._period * random.uniform(0.8, 1.2)  # noqa: S311  # jitter is no secret
            try:
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            except TimeoutError:
                self._due.update(self._agents.list_places())
            await asyncio.sleep(random.uniform(*_GATHER))  # noqa: S311  # jitter is no secret
            self._wake.clear()
            due, self._due = self._due, set()
            for place in sorted(due):
                await self._write_status(place)

    async def _write_status(self, place: Place) -> None:
        entry = self._agents.find_entry(place)
        if entry is None:
            return
        try:
            wanted = self._wanted(entry)
            if is_different(wanted, entry.status) and not _is_newer(entry.status, wanted):
                written = await self._write(place, wanted)
                entry.status = written.get("status") or {}
        except Unreachable:
            logger.debug("the status of Agent %s/%s waits for the API server", *place)
        except Refused as error:
            self._log_refusal(place, error)
        except Exception:  # one Agent must not keep the others from their status
            logger.exception("the status of Agent %s/%s cannot be written", *place)

    def _log_refusal(self, place: Place, error: Refused) -> None:
        """Log each refusal of a status once. A 404 is ignored: the Agent is gone."""
        if error.status == 404 or str(error) in self._refused:
            return
        self._refused.add(str(error))
        logger.warning("the API server refuses the status of Agent %s/%s: %s", *place, error)


def _is_newer(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return True if a status is of a later generation of the Agent."""
    generation = stored.get("observedGeneration")
    return isinstance(generation, int) and generation > wanted["observedGeneration"]


class Secrets:
    """Reads the Secrets named by Agents."""

    def __init__(self, server: ApiClient) -> None:
        self._server = server

    async def read(self, wanted: SecretEntry) -> Mapping[str, bytes]:
        """Return the entries of a key's Secret. Raises `NoSecret`, or `NoAnswer` if it may work later."""
        try:
            secret = await self._server.get(
                object_path("v1", "secrets", wanted.namespace, wanted.secret.name)
            )
            return {key: b64decode(text) for key, text in (secret.get("data") or {}).items()}
        except (Unreachable, binascii.Error) as error:
            raise NoAnswer from error
        except Refused as error:
            if error.passing:
                raise NoAnswer from error
            raise (_missing(wanted) if error.status == 404 else _forbidden(wanted)) from error


def _missing(wanted: SecretEntry) -> NoSecret:
    name, key = wanted.secret.name, wanted.secret.key
    command = f"kubectl -n {wanted.namespace} create secret generic {name} --from-literal={key}=…"
    return NoSecret("SecretNotFound", f"there is no Secret {name}; write one: {command}")


def _forbidden(wanted: SecretEntry) -> NoSecret:
    message = (
        f"the agent service may not read the Secret {wanted.secret.name}; "
        f"add the name to the resourceNames of the Role beckon-agent in namespace {wanted.namespace}"
    )
    return NoSecret("SecretForbidden", message)


_ACCOUNT = "give the service account the role beckon-agent in that namespace"
CURES = {401: _ACCOUNT, 403: _ACCOUNT, 404: "are Beckon's resource definitions installed?"}


@dataclass(frozen=True, slots=True)
class Periods:
    """The seconds between periodic reads, probes and writes."""

    keys: float = 30.0
    models: float = 60.0
    statuses: float = 60.0
    answering: float = 10.0


class Cluster:
    """The agents of the watched namespaces; `None` means all."""

    def __init__(
        self,
        server: ApiClient,
        own: ConfiguredAgent,
        namespaces: Collection[str | None],
        periods: Periods | None = None,
        *,
        with_events: bool = False,
    ) -> None:
        """Raise `ValueError` for an unusable model in the service's settings.

        `with_events` follows the EventTypes that are no tools, too.
        """
        every = periods or Periods()
        self._server = server
        self._own = own
        self._contact = Contact(CURES)
        self._tools = ToolStore(self._tools_changed)
        self._keys = KeyRing(Secrets(server).read, self._wanted_keys, self._key_changed, every.keys)
        self._models = ModelPool(self._keys.read_soon)
        self._probes = Probes(self._models, self._model_changed, every.models)
        self._agents = Agents(
            Parts(own, self._tools, self._models, self._keys, _describe_place), self._agent_changed
        )
        self._keeper = StatusKeeper(self._write_status, self._agents, self._to_status, every.statuses)
        scopes: Collection[str | None] = [None] if None in namespaces else sorted(filter(None, namespaces))
        self._answering = AnsweringReporter(self._tools.find_stored, self._patch_tool, every.answering)
        self._reflectors = [
            Reflector(
                server,
                Objects(tools.API_VERSION, plural, namespace),
                sink,
                self._contact,
                required=namespace in (None, own.agent.namespace),
            )
            for namespace in scopes
            for plural, sink in ((tools.PLURAL, self._tools), (agent_resource.PLURAL, self._agents))
        ]
        if with_events:
            self._reflectors += [
                Reflector(
                    server,
                    Objects(f"{GROUP}/{_SERVED}", "eventtypes", namespace),
                    self._tools.known_events,
                    self._contact,
                    required=False,
                )
                for namespace in scopes
            ]

    @property
    def complete(self) -> bool:
        """True if all Tools and Agents were read once.

        Namespaces that the API server refuses do not count, except the service's own.
        """
        return self._contact.complete

    @property
    def default(self) -> str:
        """The name of the service's own agent."""
        return self._agents.default

    @property
    def tools(self) -> int:
        """The number of callable Tools."""
        return self._tools.count_ready

    def find(self, name: str) -> AgentHandle | UnavailableAgent | None:
        """Return the agent of this name."""
        return self._agents.find(name)

    def hosted(self) -> Sequence[AgentHandle]:
        """Return the agents taking requests, the service's own first."""
        return self._agents.hosted()

    def call_ended(self, tool: Tool, outcome: str) -> None:
        """Record the outcome of a call, for the condition Answering of its Tool."""
        self._answering.call_ended(tool, outcome)

    async def watch(self) -> None:
        """Follow the API server until cancelled. While it cannot be reached, the last known state applies."""
        self._probes.follow_models()
        async with asyncio.TaskGroup() as tasks:
            for reflector in self._reflectors:
                tasks.create_task(reflector.run())
            tasks.create_task(self._keys.read_periodically())
            tasks.create_task(self._keep_statuses())
            tasks.create_task(self._answering.run())

    async def close(self) -> None:
        """Close the connections to all models."""
        await self._probes.close()
        await self._models.close()

    @property
    def is_connected(self) -> bool:
        """True if Tools and Agents are being followed now. If not, the last known ones apply."""
        return self._contact.connected

    @property
    def age(self) -> float:
        """The seconds since the last news of the collection silent for longest."""
        return self._contact.age

    async def _keep_statuses(self) -> None:
        await self._contact.wait()  # a count of half the Tools is no status
        await self._keeper.write_until_cancelled()

    async def _write_status(self, place: Place, status: Mapping[str, Any]) -> Document:
        path = object_path(tools.API_VERSION, agent_resource.PLURAL, *place)
        return await self._server.patch(f"{path}/status", {"status": status})

    async def _patch_tool(self, place: Place, change: Document) -> Document:
        path = object_path(tools.API_VERSION, tools.PLURAL, *place)
        return await self._server.patch(path, change)

    def _to_status(self, entry: AgentEntry) -> dict[str, Any]:
        verdict = self._probes.find_verdict(entry.model.spec) if entry.model is not None else NOT_PROBED
        return status_of(entry, self._own, verdict)

    def _agent_changed(self, place: Place) -> None:
        self._probes.follow_models()
        self._keeper.look_at([place])

    def _tools_changed(self, namespace: str) -> None:
        self._keeper.look_at(self._agents.list_places(namespace))

    def _model_changed(self, spec: ModelSpec) -> None:
        self._keeper.look_at(self._agents.places_of_model(spec))

    def _wanted_keys(self) -> Collection[SecretEntry]:
        return self._agents.wanted_keys()

    def _key_changed(self, wanted: SecretEntry) -> None:
        self._agents.key_changed(wanted)


def _describe_place(place: Place) -> str:
    return f"`kubectl -n {place[0]} describe agent {place[1]}` says what to do"
