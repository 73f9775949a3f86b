"""Make what the tests on a cluster need and this machine lacks: `python -m tests.cluster.prepare`.

Debian's packages, the cluster's programs and Beckon's images; no cluster is started. A first time takes ten
minutes and more, which `.ci/run` spends beside the other tests.
"""

import sys

from tests import registry
from tests.cluster.images.building import PACKAGES, built_images
from tests.cluster.machine import packages, policy_engine, programs
from tests.cluster.machine.commands import ClusterError
from tests.cluster.machine.locks import alone
from tests.cluster.machine.places import places


def main() -> int:
    """Return 0, or 2 with one line of reason where something cannot be made."""
    own = places()
    try:
        packages.require_root()
        with alone(own):
            # All packages at the beginning: apt refuses to work twice at the same time.
            packages.install((*packages.NEEDED, *PACKAGES, *policy_engine.PACKAGES, *registry.PACKAGES))
            programs.build_all(own, tuple(programs.PRODUCTS))
        built_images(own)
    except ClusterError as error:
        sys.stderr.write(f"prepare: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
