"""The keys of models on a laptop: files, laid out as Kubernetes mounts Secrets."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from beckon_agent.hosting.keys import NoSecret, Wanted

_MAX_BYTES = 1024 * 1024  # of a Secret, in Kubernetes


class SecretFiles:
    """Reads the entry `KEY` of the Secret `NAME` from `FOLDER/NAME/KEY`; namespaces share the folder."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    async def read(self, wanted: Wanted) -> Mapping[str, bytes]:
        """Return the one entry that is wanted, none where it is not there; raise `NoSecret`."""
        name, key = wanted.secret.name, wanted.secret.key
        if self._folder is None:
            message = f"set BECKON_SECRETS to a folder that has the key in the file {name}/{key}"
            raise NoSecret("SecretNotFound", message)
        path = self._folder / name / key
        try:
            return {key: await asyncio.to_thread(_content, path)}
        except FileNotFoundError:
            raise NoSecret("SecretNotFound", f"there is no file {path}; write the key there") from None
        except OSError as error:
            raise NoSecret("SecretForbidden", f"{path} cannot be read: {error.strerror}") from None


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MAX_BYTES)
