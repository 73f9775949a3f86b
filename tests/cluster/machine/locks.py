"""One command at a time may change the cluster."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from tests.cluster.machine.commands import ClusterError
from tests.cluster.machine.places import Places


@contextmanager
def alone(places: Places) -> Iterator[None]:
    """Keep other commands that change the cluster away until this one is done; refuse instead of waiting."""
    places.cache.mkdir(parents=True, exist_ok=True)
    with (places.cache / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ClusterError(
                "another `make cluster` or `make cluster-down` is at work: wait for its end"
            ) from None
        yield
