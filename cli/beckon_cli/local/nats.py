"""NATS for the local platform: the address in the settings, or a server that `beckon up --durable` starts.

The server's JetStream keeps the events in a folder below the current one, so that they outlive broker, server
and platform. One platform at a time uses such a folder.
"""

import fcntl
import json
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from beckon_cli.errors import CommandError
from beckon_cli.local.ports import answers
from beckon_cli.local.process import Program

FOLDER = Path(".beckon") / "nats"
_PROGRAM = "nats-server"
_LOCK_SECONDS = 5.0  # in which the server of a platform that was killed ends
_MIN_PAYLOAD = 8 * 1024 * 1024
_HEAD_BYTES = 256 * 1024


def find_program() -> str:
    """Return the path of `nats-server`. Raises `CommandError` where there is none on PATH."""
    if program := shutil.which(_PROGRAM):
        return program
    raise CommandError(
        f"--durable needs {_PROGRAM}, which is not on PATH: install it (Debian: apt-get install {_PROGRAM}; "
        "others: nats.io/download), or name a running server in BECKON_NATS_URL",
        status=2,
    )


def server_program(url: str, environment: Mapping[str, str], folder: Path = FOLDER) -> Program:
    """Return the program of a server at `url` that keeps its streams in `folder`.

    It takes the lock of the folder and writes the server's configuration there. Raises `CommandError` where
    there is no program, where the folder cannot be written, and where another platform uses it.
    """
    program = find_program()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = _take_lock(folder)
        configuration = folder.absolute() / "nats.conf"
        configuration.write_text(_configure(url, folder.absolute(), environment), encoding="utf-8")
    except OSError as error:
        cure = "start beckon in a folder that you may write to"
        raise CommandError(f"cannot write {folder}: {error.strerror}; {cure}", status=2) from None
    command = (program, "--config", str(configuration))
    log = str(folder / "nats.log")
    return Program("NATS server", command, urls=(url,), files=(lock,), log=log)


def show_addresses(urls: str) -> str:
    """Return the addresses of a list of servers, without user names and passwords."""
    parts = (urlsplit(url) for url in split_urls(urls))
    return ", ".join(f"{each.scheme}://{each.netloc.rpartition('@')[2]}" for each in parts)


async def find_silent(urls: str) -> str:
    """Return the addresses of a list of servers if none of them answers, else ""."""
    servers = split_urls(urls)
    # A server behind a WebSocket greets after a handshake of HTTP.
    plain = [url for url in servers if not url.startswith("ws")]
    if len(plain) < len(servers) or any([await answers(url) for url in plain]):
        return ""
    return show_addresses(urls)


def split_urls(urls: str) -> list[str]:
    """Return the addresses of a list with commas, such as `nats://one:4222,nats://two:4222`."""
    return [url.strip() for url in urls.split(",") if url.strip()]


def _take_lock(folder: Path) -> int:
    """Return an open file with the lock of a folder.

    The server inherits the file, so the lock holds as long as this process or the server lives.
    """
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    end = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                os.close(lock)
                raise CommandError(
                    f"another platform uses {folder}: stop it, or start this one in another folder", status=2
                ) from None
            time.sleep(0.05)
        else:
            return lock


def _configure(url: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Return the server's configuration: loopback alone, events as large as the broker takes them.

    Every setting is known to version 2.9, which Debian has.
    """
    text = environment.get("BECKON_MAX_EVENT_BYTES", "")
    largest = int(text) if text.isascii() and text.isdecimal() else 0  # the broker refuses others
    settings = {
        "listen": url.partition("://")[2],
        "log_file": str(folder / "nats.log"),
        "logfile_size_limit": 4 * 1024 * 1024,
        "max_payload": max(_MIN_PAYLOAD, largest + _HEAD_BYTES),
        "jetstream": {"store_dir": str(folder)},
    }
    # NATS reads JSON, too: its own format is a superset.
    return json.dumps(settings, indent=2, ensure_ascii=False) + "\n"
