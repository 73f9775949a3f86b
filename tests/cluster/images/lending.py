"""This machine's own package sources and certificates, lent to a build and gone after it."""

import ast
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.images.base import host_sources
from tests.cluster.images.inputs import ROOT
from tests.cluster.machine.commands import output

PIP = ROOT / ".uv" / "bin" / "pip"
PIP_KEYS = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "default-timeout", "retries")
NPM_KEYS = ("registry", "proxy", "https-proxy", "noproxy", "strict-ssl")
APT_KEYS = ("Acquire::http", "Acquire::Check", "Acquire::Retries")
LENT = "/run/secrets"


@contextmanager
def lent() -> Iterator[list[str]]:
    """The `--secret` options of a build; what they name gets into no layer, and is removed at the end."""
    with tempfile.TemporaryDirectory() as folder:
        files = dict(_files())
        options = []
        for name, text in files.items():
            path = Path(folder, name)
            path.write_text(text)
            options.append(f"--secret=id={name},src={path}")
        yield options


def _files() -> Iterator[tuple[str, str]]:
    pip = _pip_settings()
    certificates = pip.pop("cert", None) or os.environ.get("SSL_CERT_FILE")
    if certificates:
        yield "ca.pem", Path(certificates).read_text()
        pip["cert"] = f"{LENT}/ca.pem"
    yield "pip.conf", "\n".join(["[global]", *(_line(key, value) for key, value in pip.items()), ""])
    npm = _npm_settings()
    if certificates:
        npm["cafile"] = f"{LENT}/ca.pem"
    yield "npmrc", "".join(f"{key}={value}\n" for key, value in npm.items())
    apt = [line for line in output(["apt-config", "dump"]).splitlines() if line.startswith(APT_KEYS)]
    sources = host_sources()
    if sources:
        yield "debian.sources", sources.read_text()
        apt += [f'Dir::Etc::SourceList "{LENT}/debian.sources";', 'Dir::Etc::SourceParts "-";']
    yield "apt.conf", "\n".join([*apt, ""])


def _pip_settings() -> dict[str, str]:
    """The settings of pip in its files and, above them, in the environment; no folders of this machine."""
    found: dict[str, str] = {}
    lines = output([PIP, "config", "list"]).splitlines()
    for line in sorted(lines, key=lambda line: line.startswith(":env:")):
        where, _, value = line.partition("=")
        key = where.rpartition(".")[2]
        if key in (*PIP_KEYS, "cert"):
            found[key] = ast.literal_eval(value)
    return found


def _npm_settings() -> dict[str, str]:
    """The settings of npm where there is one; without it the build uses the registry that npm knows."""
    if shutil.which("npm") is None:
        return {}
    lines = output(["npm", "config", "get", *NPM_KEYS]).splitlines()
    found = dict(line.split("=", 1) for line in lines if "=" in line)
    return {key: value for key, value in found.items() if value not in ("null", "undefined", "")}


def _line(key: str, value: str) -> str:
    return f"{key} = " + "\n    ".join(value.split())
