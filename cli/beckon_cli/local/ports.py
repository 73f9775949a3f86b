"""Free ports for the processes of the local platform."""

import socket
from collections.abc import Iterator

_HIGHEST = 32_000  # above begins the range that outgoing connections take


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen there now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


def free_ports(host: str, start: int) -> Iterator[int]:
    """Yield ports that are free, from `start` upward, each once."""
    for port in range(start, _HIGHEST if start < _HIGHEST else 65_536):
        if is_free(host, port):
            yield port
