"""The cluster of this machine: up, down, status, env, load, restart."""

import argparse
import sys
from pathlib import Path

from tests.cluster.machine import cleanup, daemons, images, kubernetes, packages, places, up
from tests.cluster.machine.commands import ClusterError
from tests.cluster.machine.places import Places


def main() -> int:
    """Do what the command line asks; 2 and one line on standard error when it cannot be done."""
    request = parser().parse_args()
    try:
        return run(request, places.places())
    except ClusterError as problem:
        print(f"cluster: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "cluster: interrupted; `make cluster` starts anew, `make cluster-down` removes it",
            file=sys.stderr,
        )
        return 130


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="python -m tests.cluster.machine", description=__doc__)
    verbs = top.add_subparsers(dest="verb", required=True)
    verbs.add_parser("up", help="start the cluster, or say that it runs")
    verbs.add_parser("down", help="remove every trace of it but the built programs")
    verbs.add_parser("status", help="what runs; 1 when the cluster does not")
    verbs.add_parser("env", help='shell lines: eval "$(python -m tests.cluster.machine env)"')
    load = verbs.add_parser("load", help="make the images of docker archives known to the node")
    load.add_argument("archives", nargs="+", type=Path, metavar="TAR")
    restart = verbs.add_parser("restart", help="end one daemon and start it again")
    restart.add_argument("daemon", help="such as kube-apiserver")
    return top


def run(request: argparse.Namespace, where: Places) -> int:
    """Carry out one verb and return the exit code."""
    if request.verb == "status":
        return status(where)
    if request.verb == "env":
        print(up.environment(where))
        return 0
    if request.verb == "up":
        up.up(where)
    elif request.verb == "down":
        cleanup.down(where)
    elif request.verb == "load":
        packages.require_root()
        for archive in request.archives:
            print(images.load(where, archive))
    else:
        daemons.restart(where, request.daemon)
        daemons.wait_until_up(where, request.daemon, lambda: kubernetes.answers(where), 90)
    return 0


def status(where: Places) -> int:
    """Print what runs, and return 0 for a whole cluster."""
    if not where.ready.exists():
        left = cleanup.traces(where)
        print(f"no cluster runs; of a former one: {', '.join(left) or 'nothing'}")
        return 1
    for name in daemons.names(where):
        print(
            f"{name}: {'runs' if daemons.alive(where, name) else 'ENDED; ' + daemons.last_words(where, name)}"
        )
    print(f"API server: {'ready' if kubernetes.answers(where) else 'NOT READY'}")
    return 0 if up.running(where) else 1


sys.exit(main())
