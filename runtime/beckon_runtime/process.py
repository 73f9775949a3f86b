"""A service's process: its listening sockets, its memory, its stop by a signal, and its refusal to start."""

import asyncio
import contextlib
import ctypes
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterable

_BACKLOG = 4096
_ACCEPTED_AT_ONCE = 16
_TURNS_TO_BEGIN = 2
_USAGE = 2
GARBAGE_THRESHOLDS = (10_000, 20, 50)
"""Requests leave few cycles: a look for them after every 700 objects takes a twentieth of their time."""


class CannotListen(Exception):
    """A port is not available; the message names address, reason and cure."""


def listen(host: str, port: int, cure: str = "set BECKON_PORT to another port") -> socket.socket:
    """Return a listening socket, for one address of the host. Raises `CannotListen` with the cure."""
    try:
        # asyncio switches off Nagle's algorithm only where the protocol is named.
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
        except BaseException:
            listener.close()
            raise
    except (OSError, OverflowError) as error:
        # Of an address that cannot be resolved, the number is no error of the system.
        number = None if isinstance(error, socket.gaierror) else getattr(error, "errno", None)
        reason = os.strerror(number) if number else getattr(error, "strerror", None) or str(error)
        raise CannotListen(f"cannot listen on {host}:{port}: {reason}; {cure}") from None
    listener.setblocking(False)
    return listener


def copies_of(listener: socket.socket, ports: int = 1) -> list[socket.socket]:
    """Return copies of a listening socket, to be served beside it; `ports` is how many the process serves.

    uvloop accepts one connection of each socket in a turn of its loop. In a busy process a turn takes tens of
    milliseconds, so with one socket the last of 250 new connections would wait for seconds (decision 0069).
    Each copy is an open file, so a process with several ports has fewer for each.
    """
    return [listener.dup() for _ in range(_ACCEPTED_AT_ONCE // ports - 1)]


async def accept_connections(listener: socket.socket) -> list[tuple[socket.socket, str]]:
    """Wait for connections; return those that are there, each with its client's address. Raises `OSError`.

    Several at once, for the reason of `copies_of`.
    """
    accepted = [await asyncio.get_running_loop().sock_accept(listener)]
    with contextlib.suppress(OSError):  # no more of them, or an error that the next call raises
        while len(accepted) < _ACCEPTED_AT_ONCE:
            accepted.append(listener.accept())
    for connected, _ in accepted:
        connected.setblocking(False)
    return [(connected, str(address[0])) for connected, address in accepted]


async def stop_accepting(descriptors: Iterable[int]) -> None:
    """Take no more connections at the sockets of an `asyncio.Server`; return when those before have begun.

    asyncio accepts a connection in one turn of its loop, makes its transport in the next, and calls the
    protocol in a third. A server that is closed before the second leaves the connection open, unserved.
    """
    loop = asyncio.get_running_loop()
    for descriptor in descriptors:
        loop.remove_reader(descriptor)
    for _ in range(_TURNS_TO_BEGIN):
        await asyncio.sleep(0)


def base_url(listener: socket.socket, host: str) -> str:
    """Return the URL of a listening socket on this machine."""
    port = listener.getsockname()[1]
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"


def settle_memory() -> None:
    """Free memory left by the start, and freeze the remaining objects.

    Later garbage collections skip the frozen objects. Imports leave holes of some five megabytes; glibc frees
    them only on request.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
        if trim is not None:
            trim(0)


def on_stop_signal(stop: Callable[[], object]) -> None:
    """Call `stop` in the running loop on SIGTERM and SIGINT."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)


def refuse_start(service: str, reason: str) -> int:
    """Write the reason to standard error, on one line; return the exit status 2."""
    sys.stderr.write(f"{service}: {reason}\n")
    return _USAGE
