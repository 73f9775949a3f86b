"""The probe's HTTP server for the Broker: its tools, and the sinks for replies and dead letters.

It counts each delivery. Replies and dead letters go on to the shim of the probe, replies of one reply Trigger
only: several Triggers bring the same reply.
"""

import asyncio
import contextlib
import re
import socket
import textwrap
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web

from beckon_cli.errors import CommandError
from beckon_cli.probe.tools import REASON, Behaviour
from beckon_contract.cloudevents.events import CloudEvent, EventError, from_http
from beckon_contract.cloudevents.extensions import NOT_BEGUN
from beckon_shim.waiters import decode_error

_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?")
_MAX_BYTES = 4 * 1024 * 1024


@dataclass
class ToolDeliveries:
    """The deliveries to one tool: how often each call came, and the most at the same time."""

    runs: Counter[str] = field(default_factory=Counter)
    working: int = 0
    most: int = 0


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """The error attributes of one dead letter; `code` and `reason` are "" if they are missing."""

    code: str
    reason: str
    not_begun: bool

    def describe(self) -> str:
        """Return its content in a few words."""
        reason = ""
        if self.reason:
            reason = "the tool's text" if REASON in self.reason else f"`{_shorten(self.reason)}`"
        parts = [f"code {self.code}" if self.code else "", reason, "not begun" if self.not_begun else ""]
        return ", ".join(filter(None, parts)) or "no reason"


def _shorten(reason: str) -> str:
    """Return the beginning of a reason, without addresses, which differ in each run."""
    return textwrap.shorten(_ADDRESS.sub("ADDRESS", reason), 80, placeholder=" …")


class Endpoint:
    """The running server. `url` is its address for the Broker."""

    def __init__(self, url: str, refusing_url: str, behaviours: Mapping[str, Behaviour]) -> None:
        self.url = url
        self.refusing_url = refusing_url
        self.visits: defaultdict[str, ToolDeliveries] = defaultdict(ToolDeliveries)
        self.replies: defaultdict[str, list[CloudEvent]] = defaultdict(list)
        self.letters: defaultdict[str, list[DeadLetter]] = defaultdict(list)
        self.reply_trigger = ""
        "The reply Trigger with the replies that go on to the shim."
        self.shim_url = ""
        "The address of the shim for replies; empty without one."
        self._behaviours = behaviours
        self._arrived = asyncio.Condition()
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Open the connections to the shim."""
        self._session = aiohttp.ClientSession(skip_auto_headers=("Content-Type",))

    async def close(self) -> None:
        """Close them."""
        if self._session is not None:
            await self._session.close()

    async def wait_for_reply(self, triggers: int, event_id: str, seconds: float) -> set[str]:
        """Wait until an event has come through so many reply Triggers, for `seconds` at most.

        Returns the names of those that brought it.
        """

        def seen() -> set[str]:
            return {name for name, events in self.replies.items() if any(e.id == event_id for e in events)}

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._arrived:
                await self._arrived.wait_for(lambda: len(seen()) >= triggers)
        return seen()

    async def handle_tool(self, request: web.Request) -> web.StreamResponse:
        """Count a delivery to a tool, and behave as its case says."""
        case = request.match_info["case"]
        behaviour = self._behaviours.get(case)
        if behaviour is None:
            return web.Response(status=404, text=f"the probe has no tool {case}")
        event = await _read_event(request)
        visits = self.visits[case]
        visits.runs[event.id] += 1
        visits.working += 1
        visits.most = max(visits.most, visits.working)
        try:
            return await behaviour(request, event)
        finally:
            visits.working -= 1

    async def handle_reply(self, request: web.Request) -> web.StreamResponse:
        """Note an event of a reply Trigger, and pass it to the shim if it is the chosen one."""
        name = request.match_info["name"]
        event = await _read_event(request)
        async with self._arrived:
            self.replies[name].append(event)
            self._arrived.notify_all()
        if name == self.reply_trigger and self.shim_url:
            return await self._forward(request, "/replies")
        return web.Response(status=202)

    async def handle_dead_letter(self, request: web.Request) -> web.StreamResponse:
        """Note a dead letter, and pass it to the shim."""
        event = await _read_event(request)
        extensions = event.extensions
        letter = DeadLetter(
            code=str(extensions.get("knativeerrorcode", "")),
            reason=decode_error(str(extensions.get("knativeerrordata", ""))),
            not_begun=str(extensions.get(NOT_BEGUN, "")).lower() == "true",
        )
        self.letters[event.id].append(letter)
        return await self._forward(request, "/dead-letters") if self.shim_url else web.Response(status=202)

    async def _forward(self, request: web.Request, path: str) -> web.Response:
        assert self._session is not None  # noqa: S101  # opened with the server
        headers = {
            name: value
            for name, value in request.headers.items()
            if name.lower().startswith("ce-") or name.lower() == "content-type"
        }
        try:
            async with self._session.post(
                self.shim_url + path, data=await request.read(), headers=headers
            ) as answer:
                return web.Response(status=answer.status, body=await answer.read())
        except (aiohttp.ClientError, OSError):
            return web.Response(status=503)  # the Broker tries again


async def _read_event(request: web.Request) -> CloudEvent:
    """Return the event of a request. Raises the answer 400 for a request that is none."""
    try:
        return from_http(request.raw_headers, await request.read(), relayed=True)
    except EventError as error:
        raise web.HTTPBadRequest(text=str(error)) from None


@contextlib.asynccontextmanager
async def serve_endpoint(host: str, behaviours: Mapping[str, Behaviour]) -> AsyncIterator[Endpoint]:
    """Serve on a free port of this machine, addressed as `host`; yield the endpoint.

    A host of loopback is listened on alone, any other on all addresses: it may be that of a gateway.
    Raises `CommandError` if the machine has no free port.
    """
    listened = host if host.startswith("127.") or host == "::1" else "0.0.0.0"  # noqa: S104  # see above
    shown = f"[{host}]" if ":" in host else host
    family = socket.AF_INET6 if ":" in listened else socket.AF_INET
    with socket.socket(family) as bound, socket.socket(family) as refusing:
        try:
            bound.bind((listened, 0))
            refusing.bind((listened, 0))  # bound and never listening: its connections are refused
        except OSError as error:
            raise CommandError(f"cannot listen on {listened}: {error.strerror}", status=2) from None
        endpoint = Endpoint(
            f"http://{shown}:{bound.getsockname()[1]}",
            f"http://{shown}:{refusing.getsockname()[1]}/",
            behaviours,
        )
        app = web.Application(client_max_size=_MAX_BYTES)
        app.router.add_post("/tools/{case}", endpoint.handle_tool)
        app.router.add_post("/replies/{name}", endpoint.handle_reply)
        app.router.add_post("/dead-letters", endpoint.handle_dead_letter)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await endpoint.open()
        await runner.setup()
        try:
            await web.SockSite(runner, bound).start()
            yield endpoint
        finally:
            await runner.cleanup()
            await endpoint.close()


def find_own_address(host: str, port: int) -> str:
    """Return the address of this machine from which it reaches another.

    Raises `CommandError` for a host that cannot be resolved or has no route.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(address)  # of UDP: nothing is sent
            own: str = probe.getsockname()[0]
    except OSError as error:
        message = f"cannot reach {host}: {error.strerror}; run the probe where the Broker's name is known"
        raise CommandError(message, status=2) from None
    return own
