"""Secrets made once if missing: the shim's keys, the agent's first key."""

import base64
import logging
import secrets
from collections.abc import Mapping
from typing import Any

from beckon_contract.api_keys import new_entry, new_key
from beckon_sources.api_client import ApiClient
from beckon_sources.api_types import Refused, object_path

logger = logging.getLogger(__name__)

FIRST_KEY = "beckon-first-key"
"""The Secret with the readable first API key, until it is deleted."""

_SHIM_ENTRY = "keys"  # one key a line, the first signs: beckon_contract.correlation
_AGENT_ENTRY = "keys.jsonl"  # one key a line: beckon_contract.api_keys
_FIRST_ENTRY = "api-key"
_FIRST_NAME = "first"


async def ensure_shim_keys(api: ApiClient, namespace: str, name: str) -> None:
    """Create the Secret with the shim's key unless it exists.

    Raises the errors of a request of `ApiClient`.
    """
    if await _read_secret(api, namespace, name) is None:
        data = {_SHIM_ENTRY: f"{secrets.token_hex(32)}\n"}
        await _create_secret(api, _new_secret(namespace, name, "shim", data))


async def ensure_first_key(api: ApiClient, namespace: str, name: str) -> None:
    """Create the Secret of API keys with one key, unless it exists.

    The key can be read in the Secret `beckon-first-key`. That Secret is created first, and read if it exists,
    so that a stop between the two writes never leaves a key that opens nothing. Raises the errors of a
    request of `ApiClient`.
    """
    if await _read_secret(api, namespace, name) is not None:
        return
    await _create_secret(api, _new_secret(namespace, FIRST_KEY, "agent", {_FIRST_ENTRY: new_key()}))
    first = await _read_secret(api, namespace, FIRST_KEY)
    written = (first or {}).get("data", {}).get(_FIRST_ENTRY, "")
    key = base64.b64decode(written).decode().strip()
    if not key:
        cure = "delete it and restart the operator, and another is made"
        logger.error("Secret %s/%s has no %s: %s", namespace, FIRST_KEY, _FIRST_ENTRY, cure)
        return
    await _create_secret(
        api, _new_secret(namespace, name, "agent", {_AGENT_ENTRY: f"{new_entry(key, _FIRST_NAME).line()}\n"})
    )


def _new_secret(namespace: str, name: str, component: str, data: Mapping[str, str]) -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": "beckon", "app.kubernetes.io/component": component}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "stringData": dict(data),
    }


async def _read_secret(api: ApiClient, namespace: str, name: str) -> dict[str, Any] | None:
    return await api.find(object_path("v1", "secrets", namespace, name))


async def _create_secret(api: ApiClient, document: dict[str, Any]) -> None:
    """Create a Secret, unless another replica was faster."""
    metadata = document["metadata"]
    try:
        await api.create(object_path("v1", "secrets", metadata["namespace"]), document)
    except Refused as error:
        if error.status != 409:
            raise
    else:
        logger.info("made Secret %s/%s", metadata["namespace"], metadata["name"])
