"""Run the tests that need a cluster: `python -m tests.cluster [arguments of pytest]`.

With KUBECONFIG set, on that cluster: Knative Eventing and Serving must be there, and LOAD is the
command that brings an image archive into it, such as `kind load image-archive`. Without it, on
the cluster of `make cluster`, which is started for the tests and stopped after them where it
does not run already.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.images.building import built_images
from tests.cluster.machine.cleanup import down
from tests.cluster.machine.commands import ClusterError, say
from tests.cluster.machine.images import load
from tests.cluster.machine.places import Places, places
from tests.cluster.machine.up import running, up

HERE = Path(__file__).resolve().parent
# First what needs no Beckon in the cluster, then what installs and removes it, then what uses it. The second
# folders of a phase run in parallel with the first ones, and use the time in which those wait: at first those
# that another operator does not disturb, then those that need no cluster. The agents of tests come before the
# shim, because a test of the operator takes a version of EventTypes away at the end.
PHASES = (
    (("webhook", "operator"), ("agent", "brokers", "shim")),
    (("install", "journey", "serving", "broker_class"), ("chart", "images")),
)
PYTEST = ("--timeout=600", "--tb=short", "--durations=40", "-p", "no:randomly")


def main(arguments: list[str]) -> int:
    """Return pytest's exit code, 2 with one line of reason where there is no cluster, 130 after Ctrl-C."""
    try:
        with _cluster() as environment:
            if arguments:
                return subprocess.run(_command(arguments), env=environment, check=False).returncode
            return _run_all(environment)
    except ClusterError as error:
        sys.stderr.write(f"test-cluster: {error}\n")
        return 2
    except KeyboardInterrupt:  # pytest and `down` have had their say
        return 130


def _run_all(environment: Mapping[str, str]) -> int:
    """Run the tests of all folders; return the first exit code that is not 0."""
    codes = [code for phase in PHASES for code in _run_phase(environment, *phase)]
    return next(filter(None, codes), 0)


def _run_phase(
    environment: Mapping[str, str], folders: Sequence[str], others: Sequence[str]
) -> tuple[int, int]:
    """Run the tests of folders, and of others in parallel; return both exit codes."""
    say(f"tests: {', '.join(others)} run beside {', '.join(folders)}; their output comes last")
    with tempfile.TemporaryFile("w+") as printed:
        beside = subprocess.Popen(
            _command(_folders(others)), env=environment, stdout=printed, stderr=subprocess.STDOUT
        )
        try:
            first = subprocess.run(_command(_folders(folders)), env=environment, check=False)
            beside.wait()
        finally:
            beside.terminate()
            beside.wait()
            printed.seek(0)
            sys.stdout.write(printed.read())
            sys.stdout.flush()
    return first.returncode, beside.returncode


def _folders(names: Sequence[str]) -> list[str]:
    return [str(HERE / name) for name in names]


def _command(request: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "pytest", *PYTEST, *request]


@contextmanager
def _cluster() -> Iterator[Mapping[str, str]]:
    """Give the environment in which tests find a cluster that has Beckon's images."""
    if os.environ.get("KUBECONFIG"):
        _lend_images()
        yield os.environ
        return
    own = places()
    found = running(own)
    up(own)
    try:
        for tar in built_images().values():
            load(own, tar)
        yield _environment(own)
    finally:
        if not found:
            down(own)


def _lend_images() -> None:
    """Bring the images into a cluster elsewhere, by the command that its owner names."""
    command = os.environ.get("LOAD")
    if not command:
        say("LOAD is not set: the images dev.local/beckon-* must be in the cluster already")
        return
    for tar in built_images().values():
        say(f"{command} {tar}")
        subprocess.run([*shlex.split(command), str(tar)], check=True)


def _environment(own: Places) -> Mapping[str, str]:
    path = os.pathsep.join((str(own.kubectl.parent), str(own.helm.parent), os.environ["PATH"]))
    return {**os.environ, "KUBECONFIG": str(own.kubeconfig), "PATH": path}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
