"""The Secret with the key that the shim signs its tokens with, made once where it is missing."""

import logging
import secrets

from beckon_operator.api import Api, Refused, path_to

logger = logging.getLogger(__name__)

_ENTRY = "keys"  # one key a line, the first signs: beckon_contract.correlation


async def ensure_keys(api: Api, namespace: str, name: str) -> None:
    """Create the Secret with a random key unless it exists; raise what a request of `Api` raises."""
    try:
        await api.get(path_to("", "v1", "secrets", namespace, name))
    except Refused as error:
        if error.status != 404:
            raise
    else:
        return
    document = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/name": "beckon", "app.kubernetes.io/component": "shim"},
        },
        "stringData": {_ENTRY: f"{secrets.token_hex(32)}\n"},
    }
    try:
        await api.create(path_to("", "v1", "secrets", namespace), document)
    except Refused as error:
        if error.status != 409:
            raise
    else:
        logger.info("made Secret %s/%s, with a fresh key for the shim", namespace, name)
