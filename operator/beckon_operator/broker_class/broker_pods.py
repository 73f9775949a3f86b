"""The broker's pods: which of them route by a Trigger, and the state of their log.

A Trigger must be in force in those of the ingress, which match events, and in those of the dispatcher, which
deliver them. Only Triggers that are not Ready yet are sent, up to a thousand in one request. A pod whose port
refuses the connection takes no events and is not waited for; one that is silent is.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp

from beckon_contract.knative.broker_class import (
    IN_FORCE_PATH,
    MAX_STATES,
    LogReport,
    TriggerState,
    in_force_request,
    read_answer,
)
from beckon_operator.broker_class.broker_status import IngressView
from beckon_sources.api_types import Document, Name, name_of
from beckon_sources.reflector import Pauses

logger = logging.getLogger(__name__)

LONG_SECONDS = 2.0
"""After which pods that do not route by a Trigger are named."""

API_VERSION, PLURAL = "discovery.k8s.io/v1", "endpointslices"

_SERVICE_LABEL = "kubernetes.io/service-name"
_WAIT_SECONDS = 0.25  # of one request for Triggers: a new one waits as long behind one that is stuck
_REPORT_SECONDS = 5.0  # between two looks at a log
_ANSWER_SECONDS = 10.0
_GATHER_SECONDS = 0.005  # Triggers that are written one after another are sent in one request

Key = tuple[str, str]


class BrokerSlices:
    """The ready endpoints of the broker's Services; a sink of a reflector of EndpointSlices."""

    def __init__(self, ingress: str, dispatcher: str, changed: Callable[[], None]) -> None:
        self._ingress = ingress
        self._dispatcher = dispatcher
        self._changed = changed
        self._slices: dict[Name, tuple[str, Mapping[str, str]]] = {}

    def put(self, document: Document) -> None:
        """Take an EndpointSlice."""
        labels = (document.get("metadata") or {}).get("labels") or {}
        service = labels.get(_SERVICE_LABEL)
        if service and service in (self._ingress, self._dispatcher):
            self._slices[name_of(document)] = service, _read_slice(document)
            self._changed()

    def drop(self, namespace: str, name: str) -> None:
        """Forget a deleted EndpointSlice."""
        if self._slices.pop((namespace, name), None) is not None:
            self._changed()

    def pods(self) -> dict[str, str]:
        """Return the base URLs of the ready pods by name."""
        return {name: url for _, pods in self._slices.values() for name, url in pods.items()}

    def ingress_pods(self) -> set[str]:
        """Return the names of the ready pods of the ingress."""
        slices = (pods for service, pods in self._slices.values() if service == self._ingress)
        return {name for pods in slices for name in pods}


def _read_slice(document: Document) -> Mapping[str, str]:
    ports = document.get("ports") or ()
    port = next((one.get("port") for one in ports if one.get("name") == "http"), None)
    port = port or next((one.get("port") for one in ports), None)
    pods = {}
    for endpoint in (document.get("endpoints") or ()) if port else ():
        addresses, target = endpoint.get("addresses") or (), endpoint.get("targetRef") or {}
        # Without the condition an endpoint counts as ready (discovery/v1, EndpointConditions).
        if addresses and (endpoint.get("conditions") or {}).get("ready") is not False:
            host = f"[{addresses[0]}]" if ":" in addresses[0] else addresses[0]
            pods[str(target.get("name") or addresses[0])] = f"http://{host}:{port}"
    return pods


class BrokerPods:
    """Follows the pods; Triggers are sent while this replica leads.

    `confirmed` is called with each Trigger that is now in force everywhere, `reported` after a change of the
    pods or their logs.
    """

    def __init__(
        self, leads: Callable[[], bool], confirmed: Callable[[Key], None], reported: Callable[[], None]
    ) -> None:
        self._leads = leads
        self._confirmed = confirmed
        self._reported = reported
        self._wanted: dict[Key, TriggerState] = {}
        self._since: dict[Key, float] = {}
        self._pods: dict[str, _Pod] = {}
        self._view = IngressView()
        self._has_looked = False

    def want(self, state: TriggerState) -> None:
        """Begin to send a Trigger, until it is forgotten."""
        key = state.namespace, state.name
        if self._wanted.get(key) != state:
            self._wanted[key] = state
            self._since[key] = time.monotonic()
            for pod in self._pods.values():
                pod.wake.set()

    def forget(self, key: Key) -> None:
        """Send a Trigger no more."""
        self._since.pop(key, None)
        if self._wanted.pop(key, None) is not None:
            for pod in self._pods.values():
                pod.in_force.pop(key, None)

    def waits_for(self, state: TriggerState) -> str:
        """Return why a Trigger is not in force, "" if it is in every pod.

        The pods are named once it takes long, so that a status is not written for each that follows.
        """
        if not any(pod.is_ingress and not pod.is_gone for pod in self._pods.values()):
            return "no pod of the ingress is ready"
        key = state.namespace, state.name
        waiting = [
            f"{name} ({pod.error})" if pod.error else name
            for name, pod in sorted(self._pods.items())
            if not pod.is_gone and pod.in_force.get(key) != state
        ]
        if waiting and time.monotonic() - self._since.get(key, 0.0) < LONG_SECONDS:
            return "the broker's pods do not route by it yet"
        return f"not in force yet in {', '.join(waiting)}" if waiting else ""

    @property
    def is_settled(self) -> bool:
        """True once every pod has answered, or has failed to."""
        return self._has_looked and all(pod.log is not None or pod.error for pod in self._pods.values())

    @property
    def view(self) -> IngressView:
        """The pods and their logs."""
        return self._view

    async def follow(self, slices: BrokerSlices, changed: asyncio.Event) -> None:
        """Follow every ready pod, until cancelled."""
        timeout = aiohttp.ClientTimeout(total=_ANSWER_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as session, asyncio.TaskGroup() as group:
            while True:
                changed.clear()
                ready = slices.pods()
                for name in self._pods.keys() - ready.keys():
                    self._pods.pop(name).stop()
                for name, url in ready.items():
                    if name not in self._pods or self._pods[name].url != url:
                        if name in self._pods:
                            self._pods.pop(name).stop()
                        pod = self._pods[name] = _Pod(name, url)
                        pod.task = group.create_task(self._follow_pod(pod, session))
                ingress = slices.ingress_pods()
                for pod in self._pods.values():
                    pod.is_ingress = pod.name in ingress
                self._has_looked = True
                self._look()
                for key in list(self._wanted):
                    self._check(key)
                await changed.wait()

    async def _follow_pod(self, pod: "_Pod", session: aiohttp.ClientSession) -> None:
        pauses = Pauses(0.1, 2.0)
        while True:
            pod.wake.clear()
            wanted = self._wanted.items() if self._leads() else ()
            states = [state for key, state in wanted if pod.in_force.get(key) != state]
            try:
                answer = await pod.send(session, states[:MAX_STATES])
            except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                self._note_silence(pod, error)
                await pauses.wait()
                continue
            pauses.reset()
            for state in answer:
                pod.in_force[state.namespace, state.name] = state
            self._look()
            for state in answer:
                self._check((state.namespace, state.name))
            if len(answer) < len(states):
                continue
            try:
                async with asyncio.timeout(_REPORT_SECONDS):
                    await pod.wake.wait()
                await asyncio.sleep(_GATHER_SECONDS)
            except TimeoutError:
                continue

    def _note_silence(self, pod: "_Pod", error: Exception) -> None:
        before = pod.error, pod.is_gone
        pod.error = str(error) or type(error).__name__
        pod.is_gone = isinstance(error, aiohttp.ClientConnectorError) and isinstance(
            error.os_error, ConnectionRefusedError
        )
        if before != (pod.error, pod.is_gone):
            logger.warning("the broker's pod %s does not answer at %s: %s", pod.name, pod.url, pod.error)
            self._look()
            for key in list(self._wanted) if pod.is_gone else ():
                self._check(key)

    def _check(self, key: Key) -> None:
        state = self._wanted.get(key)
        if state is not None and not self.waits_for(state):
            self._confirmed(key)

    def _look(self) -> None:
        """Make the view anew; report it if it has changed."""
        pods = {name: pod for name, pod in self._pods.items() if pod.is_ingress}
        logs = {name: pod.log for name, pod in pods.items() if pod.log is not None}
        silent = {name: pod.error for name, pod in pods.items() if pod.error}
        view = IngressView(sum(not pod.is_gone for pod in pods.values()), logs, silent)
        if view != self._view:
            self._view = view
            self._reported()


class _Pod:
    """One pod: the Triggers that it has confirmed, its log, and the error of the last request."""

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.url = url
        self.in_force: dict[Key, TriggerState] = {}
        self.log: LogReport | None = None
        self.error = ""
        self.is_gone = False
        self.is_ingress = True
        self.wake = asyncio.Event()
        self.task: asyncio.Task[Any] | None = None

    async def send(self, session: aiohttp.ClientSession, states: list[TriggerState]) -> list[TriggerState]:
        """Send Triggers; return those in force.

        Raises `aiohttp.ClientError`, `TimeoutError`, and `ValueError` for an answer that cannot be read.
        """
        content = in_force_request(states, _WAIT_SECONDS if states else 0.0)
        async with session.post(self.url + IN_FORCE_PATH, json=content) as response:
            if response.status != 200:
                raise ValueError(f"it answered {response.status}")
            answer = read_answer(await response.json(content_type=None))
        self.log, self.error, self.is_gone = answer.log, "", False
        return [state for state in states if state in answer.states]

    def stop(self) -> None:
        """Send nothing more."""
        if self.task is not None:
            self.task.cancel()
