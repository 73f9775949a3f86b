"""The processes of the local platform, with their ports and settings."""

import secrets
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from beckon_cli.local.process import Program
from beckon_cli.local.services import LocalService
from beckon_cli.settings import Settings
from beckon_contract.addresses import CLUSTER_DOMAIN

_LOOPBACK = "127.0.0.1"
_NOT_FOR_TOOLS = frozenset({"BECKON_SHIM_KEYS", "BECKON_SHIM_KEYS_FILE", "BECKON_STORE"})


@dataclass(frozen=True, slots=True)
class Addresses:
    """The URLs of the platform's parts.

    `demo` is empty when another model is configured.
    """

    agent: str
    broker: str
    shim: str
    replies: str
    demo: str = ""


def addresses(settings: Settings, ports: Iterator[int]) -> Addresses:
    """Return the URL of every part.

    The agent has its configured port, the others the next free ones.
    """
    broker, shim, replies = (f"http://{_LOOPBACK}:{next(ports)}" for _ in range(3))
    demo = "" if settings.openai_base_url else f"http://{_LOOPBACK}:{next(ports)}"
    return Addresses(settings.url, broker, shim, replies, demo)


def core_programs(
    settings: Settings, where: Addresses, generated: Path, environment: Mapping[str, str]
) -> list[Program]:
    """Return the platform's own programs, in the order of their start."""
    manifests = folders(settings, generated)
    given = environment.get("BECKON_SHIM_KEYS") or environment.get("BECKON_SHIM_KEYS_FILE")
    keys = {} if given else {"BECKON_SHIM_KEYS": secrets.token_hex(32)}
    programs = [
        _program(
            "broker",
            "beckon_broker",
            where.broker,
            BECKON_BROKER_PORT=_port(where.broker),
            BECKON_MANIFESTS=manifests,
        ),
        _program(
            "shim",
            "beckon_shim",
            where.shim,
            BECKON_SHIM_PORT=_port(where.shim),
            BECKON_SHIM_REPLY_PORT=_port(where.replies),
            BECKON_SHIM_BROKER_URL=where.broker + "/{namespace}/{name}",
            BECKON_SHIM_LATE_REPLY_SINK=where.agent + "/late-replies",
            **keys,
        ),
    ]
    if where.demo:
        programs.append(_program("demo model", "beckon_demo", where.demo, BECKON_DEMO_PORT=_port(where.demo)))
    model = (
        {"OPENAI_BASE_URL": where.demo + "/v1", "BECKON_MODEL": settings.model or "demo"}
        if where.demo
        else {
            "OPENAI_BASE_URL": settings.openai_base_url,
            "BECKON_MODEL": settings.model,
        }
    )
    agent = _program(
        "agent",
        "beckon_agent",
        where.agent,
        **model,
        OPENAI_API_KEY=settings.openai_api_key.get_secret_value(),
        BECKON_DIALECT=settings.dialect,
        BECKON_HOST=settings.host,
        BECKON_PORT=str(settings.port),
        BECKON_MANIFESTS=manifests,
        BECKON_SHIM_URL=where.shim,
        K_SINK=where.broker + "/default/default",
        **keys,
    )
    return [*programs, agent]


def folders(settings: Settings, generated: Path) -> str:
    """Return the manifest folders in the form the services read.

    The user's folder comes first, then the generated one, separated by a colon.
    """
    return f"{settings.manifests.resolve()}:{generated}"


def tool_program(
    local: LocalService, port: int, broker: str, manifests: str, allowed_hosts: str = ""
) -> Program:
    """Return the program of a tool; an adapter finds its rules in the folders `manifests`.

    It finds its port in `PORT`, as in Knative, and in `K_SINK`, as with a SinkBinding, its Broker at the
    broker service `broker`, for answers that it sends later. The adapter calls it by the name that its
    Service has in a cluster, so it is allowed that name besides the `allowed_hosts` of the settings.
    """
    url = f"http://{_LOOPBACK}:{port}"
    sink = f"{broker}/{local.service.namespace}/{local.broker}"
    dns_name = f"{local.service.name}.{local.service.namespace}.svc"
    environment = {
        "BECKON_ALLOWED_HOSTS": ",".join(
            filter(None, (allowed_hosts, dns_name, f"{dns_name}.{CLUSTER_DOMAIN}"))
        ),
        "PORT": str(port),
        "BECKON_HOST": _LOOPBACK,
        "K_SINK": sink,
        "BECKON_MANIFESTS": manifests,
    }
    return Program(local.service.name, local.command, environment, url)


def for_tools(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for tools, without the platform's secrets.

    It lacks the shim's keys, with which tools could answer for each other, and the store of the runs.
    """
    return {name: value for name, value in environment.items() if name not in _NOT_FOR_TOOLS}


def _program(name: str, module: str, url: str, **environment: str) -> Program:
    return Program(name, (sys.executable, "-m", module), {"BECKON_HOST": _LOOPBACK, **environment}, url)


def _port(url: str) -> str:
    return url.rpartition(":")[2]
