"""The agent service: reads its settings, builds its parts, serves until stopped."""

import asyncio
import contextlib
import dataclasses
import functools
import logging
import logging.config
import secrets
import socket
import sys
from collections.abc import AsyncIterator

import aiohttp
import uvicorn
from pydantic import ValidationError
from uvicorn.loops.auto import auto_loop_factory

from beckon_agent.agents.configured import ConfiguredAgent
from beckon_agent.agents.folder import FolderAgents, FolderSource
from beckon_agent.agents.keys import SecretFiles
from beckon_agent.agents.model_pool import ModelSpec
from beckon_agent.agents.registry import AgentRegistry
from beckon_agent.api.a2a.push import PushSender, allow_push, push_session
from beckon_agent.api.a2a.server import write_notification
from beckon_agent.api.access import AuthMiddleware
from beckon_agent.api.events.owed_answers import AnswerSender
from beckon_agent.api.events.request import EventRules
from beckon_agent.api.mcp.notifications import Cancellations
from beckon_agent.api.mcp.server import McpSettings
from beckon_agent.api.operations import metrics_app
from beckon_agent.app import AuthWrapper, RunStorage, build_app
from beckon_agent.auth.authentication import make_authenticator
from beckon_agent.auth.authorization import PermittedAgents
from beckon_agent.auth.quotas import LimitedCaller
from beckon_agent.auth.quotas import Quotas as SharedLimits
from beckon_agent.core.run_types import Agent, Limits
from beckon_agent.durable.engine import EnginePace, RunEngine
from beckon_agent.service import Service
from beckon_agent.settings import ALL_NAMESPACES, Settings
from beckon_agent.store.base import Store, StoreRefused, StoreUnavailable
from beckon_agent.store.sql.open import open_store
from beckon_agent.telemetry.metrics import Metrics
from beckon_agent.telemetry.spans import log_fields, start_telemetry
from beckon_agent.tool_calls.broker import ReplyKeys
from beckon_agent.tool_calls.caller import CallObserver, Dispatcher
from beckon_runtime.asgi import DrainingServer, LimitedConfig, server_config
from beckon_runtime.certificates import CertificateFolder, CertificateUnusable
from beckon_runtime.logs import log_config
from beckon_runtime.process import CannotListen, listen, refuse_start, settle_memory
from beckon_runtime.settings import setting_problems
from beckon_runtime.tls import TlsPort
from beckon_sources.api_types import NotConfigured


@contextlib.asynccontextmanager
async def served_beside(config: uvicorn.Config, listener: socket.socket | None) -> AsyncIterator[None]:
    """Serve a small application on its own port during the block.

    It has neither signals nor a drain of its own. Without a listener nothing is served.
    """
    if listener is None:
        yield
        return
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    try:
        yield
    finally:
        await server.shutdown(sockets=[listener])


class AgentServer(DrainingServer):
    """Drains on SIGTERM or SIGINT, reports it at /readyz, then stops.

    It stops when all runs have ended. Runs longer than `drain_seconds` are cut off. With `tls` it serves a
    second port.
    """

    def __init__(
        self, config: LimitedConfig, service: Service, drain_seconds: float, tls: TlsPort | None = None
    ) -> None:
        super().__init__(config, self._drain_service)
        self._service = service
        self._drain_seconds = drain_seconds
        self._serve_tls = None if tls is None else functools.partial(tls.serve, self, config)
        self._serving_tls: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve; all permanent objects are loaded by then."""
        await super().startup(sockets)
        if self._serve_tls is not None:
            self._serving_tls = asyncio.create_task(self._serve_tls())
        settle_memory()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the ports, and end the connections of both."""
        if self._serving_tls is not None:
            self._serving_tls.cancel()
        await super().shutdown(sockets)

    async def _drain_service(self) -> None:
        logger.info("draining: runs in progress: %d", self._service.running)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._drain_seconds):
                await self._service.drain_runs()


logger = logging.getLogger("beckon_agent")

_CLOSING_SECONDS = 1
_DAY = 86_400.0
_SCRAPERS_SHARE, _MOST_SCRAPERS = 0.05, 64  # connections at the port of the metrics
_MODEL_SETTINGS = "OPENAI_BASE_URL, OPENAI_API_KEY, BECKON_DIALECT"


class _CannotStart(Exception):
    """A setting cannot be used; the message has its name and the cause."""


def main() -> int:
    """Run the agent; return the exit code. It is 0 after a stop by signal, 2 on a failed start."""
    try:
        settings = Settings()
    except ValidationError as error:
        return refuse_start("beckon_agent", "; ".join(setting_problems("BECKON_", error)))
    readable = sys.stderr.isatty()
    logging.config.dictConfig(
        log_config("agent", readable=readable, level=settings.log_level, fields=log_fields)
    )
    try:
        listeners = _Listeners(
            listen(settings.host, settings.port),
            _listen_beside(settings.host, settings.metrics_port, "BECKON_METRICS_PORT"),
            _listen_beside(
                settings.host, settings.tls_port if settings.tls_folder else None, "BECKON_TLS_PORT"
            ),
        )
    except CannotListen as error:
        return refuse_start("beckon_agent", str(error))
    with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
        return runner.run(_serve_agent(settings, listeners))


@dataclasses.dataclass(frozen=True, slots=True)
class _Listeners:
    """The sockets of the agent's ports; `None` for those that are not served."""

    own: socket.socket
    metrics: socket.socket | None
    tls: socket.socket | None


def _listen_beside(host: str, port: int | None, setting: str) -> socket.socket | None:
    return None if port is None else listen(host, port, f"set {setting} to another port")


async def _serve_agent(settings: Settings, listeners: _Listeners) -> int:
    metrics = Metrics(settings.may_read_metrics())
    opened = _host_cluster(settings, metrics) if settings.watched_namespaces() else _host_folders(settings)
    connector = aiohttp.TCPConnector(limit=0)
    try:
        keys = _reply_keys(settings)
        async with (
            _export_spans(),
            opened as registry,
            _open_store(settings) as store,
            _open_push(settings, store) as push,
            _follow_certificate(settings, listeners.tls) as tls,
            aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session,
        ):
            limits = SharedLimits(store.counters, metrics.limit_reached)
            observer = registry if isinstance(registry, CallObserver) else None
            dispatcher = Dispatcher(session, settings.shim_url, keys=keys)
            caller = LimitedCaller(dispatcher, limits, observer)
            permitted = PermittedAgents(registry, deny_by_default=settings.deny_by_default)
            service = Service(permitted, caller, metrics, settings.max_runs, limits)
            holder = f"{socket.gethostname()}.{secrets.token_hex(8)}"
            rules = EventRules(sink=settings.answer_sink)
            answers = AnswerSender(store, session, registry, rules, settings.agent_namespace)
            keep_seconds = settings.keep_days * _DAY or None
            pace = EnginePace.from_hold(settings.lease_seconds)
            engine = RunEngine(
                store, service, holder, pace, keep_seconds=keep_seconds, owes_answer=answers.owes_answer
            )
            policy = settings.origin_policy(settings.host, local_pages=True)
            app = build_app(
                service,
                _auth_wrapper(settings, session),
                max_request_bytes=settings.max_request_bytes,
                mcp=McpSettings(
                    policy,
                    settings.max_request_bytes,
                    cancellations=Cancellations(store.counters),
                    agent_tool=settings.mcp_agent_tool,
                ),
                storage=_set_options(
                    RunStorage(store, engine, rules, keys, push=push, answers=answers), settings
                ),
            )
            limits_of_port = settings.connection_limits()
            config = server_config(
                app, policy, limits_of_port, closing_seconds=_CLOSING_SECONDS, proxy_headers=True
            )
            few = settings.connection_limits(_SCRAPERS_SHARE, _MOST_SCRAPERS)
            scraped = server_config(
                metrics_app(service), policy, few, lifespan="off", closing_seconds=_CLOSING_SECONDS
            )
            server = AgentServer(config, service, settings.drain_seconds, tls)
            logger.info("listening on %s:%d", settings.host, settings.port)
            async with served_beside(scraped, listeners.metrics):
                await server.serve(sockets=[listeners.own])
    except _CannotStart as error:
        return refuse_start("beckon_agent", str(error))
    return 0


def _set_options(storage: RunStorage, settings: Settings) -> RunStorage:
    return dataclasses.replace(
        storage,
        store_chats=settings.store_chats,
        public_url=settings.public_url,
        stored_events=settings.mcp_events,
        namespace=settings.agent_namespace,
    )


@contextlib.asynccontextmanager
async def _follow_certificate(
    settings: Settings, listener: socket.socket | None
) -> AsyncIterator[TlsPort | None]:
    """Load the certificate of the TLS port, and follow its changes; `None` without one."""
    if listener is None or settings.tls_folder is None:
        yield None
        return
    try:
        certificate = CertificateFolder(settings.tls_folder)
    except CertificateUnusable as error:
        raise _CannotStart(f"BECKON_TLS_FOLDER: {error}") from None
    logger.info("listening on %s:%d, with TLS", settings.host, settings.tls_port)
    following = asyncio.create_task(certificate.follow_changes())
    try:
        yield TlsPort(listener, certificate)
    finally:
        following.cancel()


@contextlib.asynccontextmanager
async def _open_push(settings: Settings, store: Store) -> AsyncIterator[PushSender | None]:
    """Open the connections for push notifications; `None` if no host is allowed."""
    if not settings.push_hosts:
        yield None
        return
    allowed = allow_push(settings.push_hosts)
    async with push_session(allowed) as session:
        yield PushSender(store, session, allowed, write_notification)


def _auth_wrapper(settings: Settings, session: aiohttp.ClientSession) -> AuthWrapper:
    try:
        checks = make_authenticator(settings.access_options(), session)
    except ValueError as error:
        raise _CannotStart(str(error)) from None
    if settings.anonymous:
        logger.warning("everybody who reaches %s is let in: BECKON_ANONYMOUS is set", settings.host)
    return functools.partial(
        AuthMiddleware,
        authenticator=checks,
        open_to_brokers=settings.open_events,
        public_url=settings.public_url,
    )


@contextlib.asynccontextmanager
async def _open_store(settings: Settings) -> AsyncIterator[Store]:
    """Open the store."""
    try:
        store = await open_store(settings.store.get_secret_value())
    except (StoreRefused, StoreUnavailable) as error:
        raise _CannotStart(f"BECKON_STORE: {error}") from None
    try:
        yield store
    finally:
        await store.aclose()


@contextlib.asynccontextmanager
async def _export_spans() -> AsyncIterator[None]:
    """Export spans to the collector named in the environment."""
    try:
        stop = start_telemetry()
    except ValueError as error:
        raise _CannotStart(str(error)) from None
    try:
        yield
    finally:
        await asyncio.to_thread(stop)  # sends what is left, which may take its time


@contextlib.asynccontextmanager
async def _host_folders(settings: Settings) -> AsyncIterator[AgentRegistry]:
    """Host the agent of the settings and the Agents of the manifests, with their tools."""
    own = _own_agent(settings)
    if not own.model.base_url:
        raise _CannotStart(f"no model is configured ({_MODEL_SETTINGS})")
    source = FolderSource(settings.manifest_folders(), own.agent.source)
    try:
        registry = FolderAgents(source, own, SecretFiles(settings.secrets))
    except ValueError as error:
        raise _CannotStart(f"{error} ({_MODEL_SETTINGS})") from None
    try:
        yield registry
    finally:
        await registry.close()


@contextlib.asynccontextmanager
async def _host_cluster(settings: Settings, metrics: Metrics) -> AsyncIterator[AgentRegistry]:
    """Host the Agents of the watched namespaces, with their Tools."""
    # Imported late: a laptop without a cluster needs none of it.
    from beckon_agent.agents.kubernetes import Cluster  # noqa: PLC0415  # see above
    from beckon_sources.api_client import connect  # noqa: PLC0415  # see above

    namespaces = [None if name == ALL_NAMESPACES else name for name in settings.watched_namespaces()]
    try:
        server = await connect("beckon-agent", settings.kubeconfig)
    except NotConfigured as error:
        raise _CannotStart(f"cannot follow BECKON_NAMESPACES: {error}") from None
    async with server:
        try:
            with_events = settings.mcp_events > 0
            cluster = Cluster(server, _own_agent(settings), namespaces, with_events=with_events)
        except ValueError as error:
            raise _CannotStart(f"{error} ({_MODEL_SETTINGS})") from None
        metrics.follow_connection(lambda: cluster.is_connected, lambda: cluster.age)
        try:
            yield cluster
        finally:
            await cluster.close()


def _reply_keys(settings: Settings) -> ReplyKeys:
    try:
        return ReplyKeys(settings.shim_keys.get_secret_value(), settings.shim_keys_file)
    except (OSError, ValueError) as error:
        raise _CannotStart(f"BECKON_SHIM_KEYS, BECKON_SHIM_KEYS_FILE: {error}") from None


def _own_agent(settings: Settings) -> ConfiguredAgent:
    key = settings.openai_api_key.get_secret_value()
    model = ModelSpec(settings.openai_base_url, settings.model, settings.dialect, key, settings.text_calls)
    return ConfiguredAgent(_make_agent(settings), model)


def _make_agent(settings: Settings) -> Agent:
    limits = Limits(
        steps=settings.max_steps,
        seconds=settings.max_seconds,
        tokens=settings.max_tokens,
        parallel_calls=settings.parallel_calls,
        result_chars=settings.max_result_chars,
        call_timeout=settings.call_timeout,
        tools=settings.max_tools,
        late_seconds=settings.late_seconds,
        calls_per_turn=settings.max_calls_per_turn,
        repeated_calls=settings.max_repeated_calls,
    )
    return Agent(
        settings.agent_name,
        settings.agent_namespace,
        settings.system_prompt,
        limits,
        pinned=settings.pinned_names(),
    )


if __name__ == "__main__":
    sys.exit(main())
