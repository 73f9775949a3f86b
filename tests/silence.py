"""An address that takes no connection and refuses none, as the IP of a Pod that is gone."""

import contextlib
import socket
from collections.abc import Iterator


@contextlib.contextmanager
def silent_address() -> Iterator[str]:
    """Give a URL where nothing ever answers: its backlog is full, so what comes is dropped."""
    with socket.socket() as silent, contextlib.ExitStack() as fillers:
        silent.bind(("127.0.0.1", 0))
        silent.listen(0)
        for _ in range(3):
            filler = fillers.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(silent.getsockname())
        yield f"http://127.0.0.1:{silent.getsockname()[1]}/"
