"""Objects of a cluster, read with one request each: a kubectl takes a quarter of a second to start."""

import asyncio
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from beckon_sources.kubeconfig import KubeconfigCredentials
from tests.patience import PATIENCE

_JSON = {"accept": "application/json"}
_DISCOVERY = {"accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}


class ReadingFailed(Exception):
    """The API server refused a request, or serves no such resource; the message says which."""


@dataclass(frozen=True)
class _Served:
    """A resource that the API server serves, with the names that kubectl takes for it."""

    root: str
    plural: str
    version: str
    group: str
    names: frozenset[str]
    namespaced: bool

    def path(self, namespace: str, name: str) -> str:
        parts = [self.root]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        return "/".join([*parts, self.plural, *([name] if name else [])])


class ApiReader:
    """Reads objects as the user of a kubeconfig."""

    def __init__(self, kubeconfig: Path) -> None:
        with ThreadPoolExecutor(1) as thread:  # since the caller may be in an event loop
            access = thread.submit(asyncio.run, KubeconfigCredentials(str(kubeconfig)).access()).result()
        headers = {"authorization": access.authorization} if access.authorization else {}
        self._http = httpx.Client(
            base_url=access.server,
            verify=access.tls or True,
            proxy=access.proxy,
            headers=headers,
            timeout=PATIENCE,
        )
        self._served: list[_Served] = []

    def read(
        self, namespace: str, resource: str, name: str = "", selector: str = ""
    ) -> dict[str, Any] | None:
        """Return an object, or the list of those with the labels of a selector; `None` without the object.

        `resource` is what kubectl takes: the singular, plural or short name, with the group after a dot where
        several have it, or with version and group. An empty namespace means all. Raises `ReadingFailed`.
        """
        query = {"labelSelector": selector} if selector else {}
        answer = self._get(self._find(resource).path(namespace, name), query)
        if answer.status_code == 404:
            return None
        found: dict[str, Any] = _checked(answer).json()
        return found

    def _get(self, path: str, query: Mapping[str, str], headers: Mapping[str, str] = _JSON) -> httpx.Response:
        try:
            return self._http.get(path, params=query, headers=headers)
        except httpx.TransportError as error:
            raise ReadingFailed(f"GET {path}: {error!r}") from None

    def _find(self, resource: str) -> _Served:
        found = self._find_known(resource)
        if found is None:
            self._served = [
                one
                for root in ("/api", "/apis")
                for one in _served(root, _checked(self._get(root, {}, _DISCOVERY)))
            ]
            found = self._find_known(resource)
        if found is None:
            raise ReadingFailed(f"the API server serves no resource {resource!r}")
        return found

    def _find_known(self, resource: str) -> _Served | None:
        word, _, of = resource.partition(".")
        return next(
            (
                one
                for one in self._served
                if word in one.names and of in ("", one.group, f"{one.version}.{one.group}")
            ),
            None,
        )


def _served(root: str, answer: httpx.Response) -> Iterator[_Served]:
    """Yield the resources below a root, in the order in which kubectl looks for a name."""
    for found in answer.json()["items"]:
        group = found["metadata"].get("name", "")
        for each in found["versions"]:
            version = each["version"]
            place = "/".join(filter(None, (root, group, version)))
            for one in each.get("resources", ()):
                names = frozenset({one["resource"], one["singularResource"], *one.get("shortNames", ())})
                namespaced = one["scope"] == "Namespaced"
                yield _Served(place, one["resource"], version, group, names, namespaced)


def _checked(answer: httpx.Response) -> httpx.Response:
    if answer.is_error:
        raise ReadingFailed(f"GET {answer.url.path}: {answer.status_code} {answer.text[:500]}")
    return answer


@cache
def reader(kubeconfig: Path) -> ApiReader:
    """Return the reader of a kubeconfig, which all tests share."""
    return ApiReader(kubeconfig)
