"""The ConfigMap of a Broker (`spec.config`), and its comparison with the log of the broker's pods.

All Brokers of the class share the pods and their NATS. The ConfigMap therefore says what a Broker needs; if
the pods have another log, the Broker is not ready, and events never go where its owner does not expect them.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from beckon_contract.knative.broker_class import LogReport
from beckon_contract.knative.delivery import Reference
from beckon_sources.api_client import ApiClient
from beckon_sources.api_types import ApiError, object_path

logger = logging.getLogger(__name__)

URL, SECRET, STORAGE, REPLICAS = "nats-url", "nats-credentials-secret", "storage", "replicas"
KEYS = (URL, SECRET, STORAGE, REPLICAS)
_STORAGES = ("file", "memory")
_REPLICAS = ("1", "3", "5")
_NATS_PORT = 4222
# Knative's webhook gives a Broker without spec.config the one of the cluster's default class
# (ConfigMap config-br-defaults): usually this one, which need not be read, with this key only. It says
# nothing about this class.
_DEFAULT_NAME = ("knative-eventing", "config-br-default-channel")
_OF_CHANNELS = "channel-template-spec"


class InvalidConfig(Exception):
    """A ConfigMap that cannot be used; the message names the key."""


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """What a Broker needs of its log; "" and 0 are no requirement."""

    url: str = ""
    secret: str = ""
    storage: str = ""
    replicas: int = 0


async def read_config(api: ApiClient, ref: Reference) -> BrokerConfig:
    """Read the ConfigMap of a Broker.

    Raises `InvalidConfig`, and the errors of a request of `ApiClient` if it cannot be read at the moment.
    """
    what = f"{ref.kind} {ref.namespace}/{ref.name}"
    if (ref.api_version, ref.kind) != ("v1", "ConfigMap"):
        raise InvalidConfig(f"spec.config names {what} ({ref.api_version}); it must be a ConfigMap (v1)")
    config_map = await api.find(object_path("v1", "configmaps", ref.namespace, ref.name))
    if config_map is None:
        raise InvalidConfig(f"{what} does not exist; spec.config of a Broker cannot be changed: create it")
    return parse_config(config_map.get("data") or {}, what)


def parse_config(data: Mapping[str, Any], what: str) -> BrokerConfig:
    """Return the content of a ConfigMap; raise `InvalidConfig` with all its mistakes."""
    if set(data) == {_OF_CHANNELS}:
        return BrokerConfig()
    problems = [f"{what} has the unknown key {key!r}" for key in sorted(set(data) - set(KEYS))]
    if problems:
        problems.append(f"a Broker of this class has {', '.join(KEYS)}")
    for key, choices in ((STORAGE, _STORAGES), (REPLICAS, _REPLICAS)):
        if key in data and str(data[key]) not in choices:
            problems.append(f"{key} of {what} is {data[key]!r}; it must be {' or '.join(choices)}")
    if URL in data and not _servers(str(data[URL])):
        problems.append(f"{URL} of {what} must be nats://HOST:PORT, several separated by commas")
    if problems:
        raise InvalidConfig("; ".join(problems))
    return BrokerConfig(
        str(data.get(URL, "")),
        str(data.get(SECRET, "")),
        str(data.get(STORAGE, "")),
        int(data.get(REPLICAS, 0)),
    )


def compare_config(config: BrokerConfig, log: LogReport, secret: str) -> str:
    """Return how the log of the pods differs from what a Broker needs, "" if it does not.

    `secret` is the name of the Secret that the pods mount.
    """
    has = _hosts(log.address)
    pairs = (
        (URL, ", ".join(sorted(_servers(config.url))), ", ".join(sorted(has)) or "memory"),
        (SECRET, config.secret, secret or "none"),
        (STORAGE, config.storage, log.storage or ("file" if has else "memory")),
        (REPLICAS, str(config.replicas or ""), str(log.replicas or 1)),
    )
    differing = [
        f"{key} is {wants}, but the broker's pods have {actual}"
        for key, wants, actual in pairs
        if wants != actual and wants
    ]
    if not differing:
        return ""
    return (
        "; ".join(differing)
        + ". All Brokers of the class share one NATS: change the ConfigMap, or the NATS of the pods (nats in "
        "the chart's values)"
    )


def _servers(url: str) -> frozenset[str]:
    """Return the servers in a list of URLs as HOST:PORT; none if one of them is no address of NATS."""
    servers = set()
    for part in filter(None, (one.strip() for one in url.split(","))):
        try:
            parts = urlsplit(part)
            port = parts.port or _NATS_PORT
        except ValueError:
            return frozenset()
        if parts.scheme not in {"nats", "tls"} or not parts.hostname:
            return frozenset()
        servers.add(f"{parts.hostname}:{port}")
    return frozenset(servers)


def _hosts(address: str) -> frozenset[str]:
    return frozenset(filter(None, (one.strip() for one in address.split(","))))


async def try_read_config(api: ApiClient, ref: Reference | None) -> BrokerConfig | str:
    """Return the configuration of a Broker, or the problem of its ConfigMap in words."""
    if ref is None or (ref.namespace, ref.name) == _DEFAULT_NAME:
        return BrokerConfig()
    try:
        return await read_config(api, ref)
    except InvalidConfig as error:
        return str(error)
    except ApiError as error:
        logger.warning("ConfigMap %s/%s could not be read: %s", ref.namespace, ref.name, error)
        return f"ConfigMap {ref.namespace}/{ref.name} could not be read: {error}"
