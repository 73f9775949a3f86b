"""Agents by the dozen: one process imports what an agent needs, and forks an agent for each order.

An order is a line of JSON on the standard input: `environment`, `log` (a file) and, for an agent that is to
die at a step of its own, `death`. The answer are the id of the new process and the port that it took. All
agents end with this one.
"""

import ctypes
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import uvicorn.lifespan.on
import uvicorn.protocols.http.httptools_impl  # noqa: F401  # imported here once, not in each agent

import beckon_agent.__main__ as agent
import beckon_agent.store.sql.postgresql  # noqa: F401  # imported here once, not in each agent
from beckon_agent.store.base import Store
from beckon_runtime.process import listen
from tests.e2e.crash.dying import Death, Dying

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG, prctl(2)


def become_an_agent(order: Mapping[str, Any]) -> NoReturn:
    """Do what `python -m beckon_agent` does in this environment."""
    status = 1
    try:
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _print_the_port(os.dup(1))
        _redirect(Path(order["log"]))
        os.environ.clear()
        os.environ.update(order["environment"])
        if order["death"]:
            _die_at(Death(**order["death"]))
        status = agent.main()
    finally:
        os._exit(status)


def _print_the_port(out: int) -> None:
    def listen_and_print(host: str, port: int) -> socket.socket:
        listener = listen(host, port)
        os.write(out, f"{os.getpid()} {listener.getsockname()[1]}\n".encode())
        os.close(out)
        return listener

    vars(agent)["listen"] = listen_and_print


def _redirect(log: Path) -> None:
    with log.open("ab") as said, Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)


def _die_at(death: Death) -> None:
    opened = agent.open_store  # type: ignore[attr-defined]  # the name that the process itself looks up

    async def open_dying(url: str) -> Store:
        return Dying(await opened(url), death)

    vars(agent)["open_store"] = open_dying


def serve() -> None:
    """Fork agents until the input ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who is dead needs no burial
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            become_an_agent(order)


if __name__ == "__main__":
    serve()
