"""A real registry of images and charts on loopback, with a password: Debian's `docker-registry`."""

import base64
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.patience import PATIENCE, wait_until

PACKAGES = ("docker-registry", "skopeo")
USER = "beckon"
PASSWORD = "open-sesame"
# bcrypt of the password, the only form that the registry reads.
_HTPASSWD = f"{USER}:$2b$04$X2gpojybb0BIKWMoRJ0YR.HKqxv9r23tTadfCyBP1TcKQvw71rvdu\n"


@dataclass(frozen=True)
class Registry:
    """A registry that runs, and the file with the password in the form of Docker's clients."""

    host: str
    login: Path

    def push_image(self, archive: Path, repository: str, tag: str) -> None:
        """Push the image in a docker-archive."""
        destination = f"docker://{self.host}/{repository}:{tag}"
        self._skopeo("copy", "--dest-tls-verify=false", f"docker-archive:{archive}", destination)

    def inspect_image(self, repository: str, tag: str, architecture: str = "amd64") -> dict[str, Any]:
        """Return the configuration of an image, as the registry sends it."""
        source = f"docker://{self.host}/{repository}:{tag}"
        options = (f"--override-arch={architecture}", "inspect", "--tls-verify=false", "--config")
        found: dict[str, Any] = json.loads(self._skopeo(*options, source))
        return found

    def read_digest(self, repository: str, tag: str) -> str:
        """Return the digest of a manifest, which a client may pin."""
        kinds = ("oci.image.manifest.v1", "oci.image.index.v1", "docker.distribution.manifest.v2")
        answer = httpx.head(
            f"http://{self.host}/v2/{repository}/manifests/{tag}",
            auth=(USER, PASSWORD),
            headers={"Accept": ", ".join(f"application/vnd.{kind}+json" for kind in kinds)},
            timeout=PATIENCE,
        )
        answer.raise_for_status()
        return answer.headers["docker-content-digest"]

    def _skopeo(self, *words: str) -> str:
        done = subprocess.run(
            ("skopeo", *words),
            env={**os.environ, "REGISTRY_AUTH_FILE": str(self.login)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@contextmanager
def running_registry(folder: Path) -> Iterator[Registry]:
    """Run a registry with its blobs in a folder."""
    host = f"127.0.0.1:{_free_port()}"
    login, passwords, log = folder / "login.json", folder / "htpasswd", folder / "log"
    passwords.write_text(_HTPASSWD)
    credentials = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    login.write_text(json.dumps({"auths": {host: {"auth": credentials}}}))
    configuration = {
        "version": "0.1",
        "storage": {"filesystem": {"rootdirectory": str(folder / "blobs")}},
        "http": {"addr": host},
        "auth": {"htpasswd": {"realm": "tests", "path": str(passwords)}},
    }
    (folder / "config.json").write_text(json.dumps(configuration))  # JSON is YAML
    program = shutil.which("docker-registry")
    assert program, "docker-registry is missing: apt-get install docker-registry"
    with log.open("wb") as output:
        process = subprocess.Popen(
            (program, "serve", folder / "config.json"), stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        try:
            wait_until(lambda: process.poll() is not None or _answers(host))
            assert process.poll() is None, log.read_text(errors="replace")
            yield Registry(host, login)
        finally:
            process.terminate()
            process.wait(PATIENCE)


def _answers(host: str) -> bool:
    try:
        return httpx.get(f"http://{host}/v2/", timeout=PATIENCE).status_code == 401
    except httpx.TransportError:
        return False


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
