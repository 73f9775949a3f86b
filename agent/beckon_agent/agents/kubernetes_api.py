"""The agent's requests to the API server, including reads of Secrets."""

import binascii
import logging
from base64 import b64decode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

import aiohttp
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration

from beckon_agent.agents.keys import NoAnswer, NoSecret, SecretEntry
from beckon_contract.resources import Key
from beckon_contract.tool_resources import API_VERSION, PLURAL
from beckon_sources.api_types import (
    ANSWER,
    CONNECT,
    SILENCE,
    Change,
    Collection,
    Document,
    NotConfigured,
    Page,
    Query,
    Refused,
    Unreachable,
    first_line,
    page_query,
    read_change,
    read_document,
    read_page,
    refusal,
    watch_query,
)

logger = logging.getLogger(__name__)

_ACCEPT = {"Accept": "application/json"}
_MERGE = {**_ACCEPT, "Content-Type": "application/merge-patch+json"}


class KubernetesApi:
    """A connection to one API server.

    Raises `Unreachable` and `Refused`, and nothing else.
    """

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    @classmethod
    async def connect(cls, kubeconfig: str) -> Self:
        """Return a connection, from a kubeconfig or the pod's service account.

        The service account is used for `""`. Nothing is sent yet. Raises `NotConfigured`.
        """
        configuration = Configuration()
        try:
            if kubeconfig:
                await config.load_kube_config(kubeconfig, client_configuration=configuration)  # type: ignore[no-untyped-call]  # the package's
            else:
                config.load_incluster_config(configuration)  # type: ignore[no-untyped-call]  # the package's
        except (config.ConfigException, OSError, ValueError) as error:
            message = f"{error}; run in a pod with a service account, or set KUBECONFIG to a kubeconfig"
            raise NotConfigured(message) from None
        client = ApiClient(configuration)
        client.user_agent = "beckon-agent"
        return cls(client)

    async def page(self, collection: Collection, rest: str = "") -> Page:
        """Return the first page of a list, or the page at `rest`.

        `rest` is the `continue` token of the page before.
        """
        return read_page(await self._ask("GET", collection.path, page_query(rest)))

    @asynccontextmanager
    async def watch(
        self, collection: Collection, version: str, seconds: int
    ) -> AsyncIterator[AsyncIterator[Change]]:
        """Watch the changes after a version, for at most `seconds`.

        Ends early if nothing comes for a while, since the connection may be dead.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT, sock_read=SILENCE)
        response = await self._send("GET", collection.path, watch_query(version, seconds), timeout)
        try:
            if response.status != 200:
                raise refusal(response.status, await _content(response))
            yield _changes(response)
        finally:
            response.close()

    async def secret(self, namespace: str, name: str) -> Mapping[str, bytes]:
        """Return the entries of a Secret."""
        document = await self._ask("GET", f"/api/v1/namespaces/{namespace}/secrets/{name}")
        try:
            return {key: b64decode(text) for key, text in (document.get("data") or {}).items()}
        except binascii.Error:
            raise Unreachable("the API server sent a Secret that is no base64") from None

    async def write_status(self, collection: str, key: Key, status: Document) -> Document:
        """Merge a status into an object, and return the object."""
        path = f"{Collection(API_VERSION, collection, key.namespace).path}/{key.name}/status"
        return await self._ask("PATCH", path, body={"status": status})

    async def patch_tool(self, place: tuple[str, str], change: Document) -> Document:
        """Merge a change into a Tool, and return the Tool.

        `place` is its namespace and name.
        """
        namespace, name = place
        path = f"{Collection(API_VERSION, PLURAL, namespace).path}/{name}"
        return await self._ask("PATCH", path, body=change)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()  # type: ignore[no-untyped-call]  # the package's

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _ask(
        self, method: str, path: str, query: Query = (), body: Document | None = None
    ) -> dict[str, Any]:
        timeout = aiohttp.ClientTimeout(total=ANSWER, sock_connect=CONNECT)
        response = await self._send(method, path, query, timeout, body)
        try:
            content = await _content(response)
        finally:
            response.release()
        if response.status != 200:
            raise refusal(response.status, content)
        return read_document(content)

    async def _send(
        self,
        method: str,
        path: str,
        query: Query,
        timeout: aiohttp.ClientTimeout,
        body: Document | None = None,
    ) -> aiohttp.ClientResponse:
        try:
            prepared = await self._client.param_serialize(
                method,
                path,
                query_params=list(query),
                header_params=dict(_MERGE if method == "PATCH" else _ACCEPT),
                body=body,
                auth_settings=["BearerToken"],
            )
            answer = await self._client.call_api(*prepared, _request_timeout=timeout)
        except (aiohttp.ClientError, OSError, config.ConfigException) as error:
            raise Unreachable(first_line(error)) from None
        response: aiohttp.ClientResponse = answer.response
        return response


async def _changes(response: aiohttp.ClientResponse) -> AsyncIterator[Change]:
    try:
        async for line in response.content:
            yield read_change(line)
    except TimeoutError:
        logger.debug("no word in %g s; watching anew", SILENCE)
    except (aiohttp.ClientError, ValueError) as error:  # a line that is too long is a ValueError
        raise Unreachable(first_line(error)) from None


async def _content(response: aiohttp.ClientResponse) -> bytes:
    try:
        return await response.read()
    except (aiohttp.ClientError, TimeoutError) as error:
        raise Unreachable(first_line(error)) from None


class Secrets:
    """Reads the Secrets named by Agents."""

    def __init__(self, server: KubernetesApi) -> None:
        self._server = server

    async def read(self, wanted: SecretEntry) -> Mapping[str, bytes]:
        """Return the entries of a key's Secret.

        Raises `NoSecret`, or `NoAnswer` if it may work later.
        """
        try:
            return await self._server.secret(wanted.namespace, wanted.secret.name)
        except Unreachable as error:
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
