"""The Secrets of the API server, as the keys of models are read from them."""

from collections.abc import Mapping

from beckon_agent.cluster.api import KubernetesApi
from beckon_agent.hosting.keys import NoAnswer, NoSecret, Wanted
from beckon_kube.server import Refused, Unreachable


class Secrets:
    """Reads the Secrets that Agents name."""

    def __init__(self, server: KubernetesApi) -> None:
        self._server = server

    async def read(self, wanted: Wanted) -> Mapping[str, bytes]:
        """Return the entries of the Secret of a key; raise `NoSecret`, or `NoAnswer` for now."""
        try:
            return await self._server.secret(wanted.namespace, wanted.secret.name)
        except Unreachable as error:
            raise NoAnswer from error
        except Refused as error:
            if error.passing:
                raise NoAnswer from error
            raise (_missing(wanted) if error.status == 404 else _forbidden(wanted)) from error


def _missing(wanted: Wanted) -> NoSecret:
    name, key = wanted.secret.name, wanted.secret.key
    command = f"kubectl -n {wanted.namespace} create secret generic {name} --from-literal={key}=…"
    return NoSecret("SecretNotFound", f"there is no Secret {name}; write one: {command}")


def _forbidden(wanted: Wanted) -> NoSecret:
    message = (
        f"the agent service may not read the Secret {wanted.secret.name}; "
        f"add the name to the resourceNames of the Role beckon-agent in namespace {wanted.namespace}"
    )
    return NoSecret("SecretForbidden", message)
