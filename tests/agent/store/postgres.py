"""A PostgreSQL of the tests' own: in a folder of its own, reached by a socket there, stopped by its pid."""

import asyncio
import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import quote

import asyncpg  # type: ignore[import-untyped]  # the package brings no types
import pytest

SECONDS_TO_START = 60
_OPTIONS = (
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "max_connections=200",
    "shared_buffers=32MB",
    "autovacuum=off",
)
_END_OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()"""
_TABLES = """
    SELECT string_agg(quote_ident(tablename), ', ') FROM pg_tables
    WHERE schemaname = 'public' AND tablename <> 'beckon_schema'"""


class Server:
    """A running server: databases by name, as addresses."""

    def __init__(self, folder: Path, user: str, port: int, programs: Path, options: str) -> None:
        self.folder = folder
        self._user = user
        self._port = port
        self._pg_ctl = programs / "pg_ctl"
        self._options = options
        self._spare: list[str] = []
        self._numbers = itertools.count(1)

    def start(self) -> None:
        """Start it; returns when it takes connections."""
        log = ("-l", self.folder / "log")
        self._control("start", "-t", str(SECONDS_TO_START), *log, "-o", self._options)

    def stop(self, mode: str = "fast", *, check: bool = True) -> None:
        """Stop it by the pid in its own folder; `fast` ends its connections, `immediate` does not tidy up."""
        self._control("stop", "-m", mode, check=check)

    @asynccontextmanager
    async def stopped(self) -> AsyncIterator[None]:
        """Have it stopped until the end of the block."""
        await asyncio.to_thread(self.stop)
        try:
            yield
        finally:
            await asyncio.to_thread(self.start)

    def _control(self, action: str, *options: str | Path, check: bool = True) -> None:
        data = self.folder / "data"
        _run(self._user, self.folder, self._pg_ctl, action, "-w", "-D", data, *options, check=check)

    def url(self, database: str) -> str:
        """Return the address of a database."""
        where = f"host={quote(str(self.folder), safe='')}&port={self._port}"
        return f"postgresql://{self._user}@/{database}?{where}"

    async def copy(self, database: str, template: str = "template0") -> str:
        """Make a database like another, and return its address."""
        connection = await asyncpg.connect(self.url("postgres"))
        # From 15 on, each page of the copy is written to the log by default, which takes twice the time.
        quick = "STRATEGY FILE_COPY" if connection.get_server_version().major >= 15 else ""
        try:
            await connection.execute(f'CREATE DATABASE "{database}" TEMPLATE "{template}" {quick}')
        finally:
            await connection.close()
        return self.url(database)

    async def drop(self, database: str) -> None:
        """Delete a database, and end its connections."""
        connection = await asyncpg.connect(self.url("postgres"))
        try:
            await connection.execute(f'DROP DATABASE "{database}" WITH (FORCE)')
        finally:
            await connection.close()

    @asynccontextmanager
    async def lend(self, template: str) -> AsyncIterator[str]:
        """Have a database with the tables of a template, all empty, until the end of the block.

        The next block gets the same one: to empty it takes a fifth of the time of a new copy. A block changes
        no tables, and `template` is the same for all blocks.
        """
        if self._spare:
            name = self._spare.pop()
        else:
            name = f"lent{next(self._numbers)}"
            await self.copy(name, template)
        yield self.url(name)
        await self._empty(name)
        self._spare.append(name)

    async def _empty(self, database: str) -> None:
        connection = await asyncpg.connect(self.url(database))
        try:
            await connection.execute(_END_OTHERS)
            tables = await connection.fetchval(_TABLES)
            await connection.execute(f"TRUNCATE {tables} RESTART IDENTITY")
        finally:
            await connection.close()


@contextmanager
def server(address: str = "", port: int = 5432) -> Iterator[Server]:
    """Start a server and stop it at the end; root hands it to a user without rights.

    With an address of this machine it is reached there as well, with a password.
    """
    programs = _programs()
    user = _user()
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    shutil.chown(folder, user)
    try:
        data = folder / "data"
        initdb = (
            "initdb",
            "-D",
            data,
            "-U",
            user,
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        )
        _run(user, folder, programs / initdb[0], *initdb[1:])
        with (data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all all scram-sha-256\n" if address else "")
        places = (f"unix_socket_directories={folder}", f"listen_addresses='{address}'", f"port={port}")
        options = " ".join(f"-c {option}" for option in (*_OPTIONS, *places))
        running = Server(folder, user, port, programs, options)
        running.start()
        try:
            yield running
        finally:
            running.stop("immediate", check=False)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(user: str, folder: Path, *command: str | Path, check: bool = True) -> None:
    account = pwd.getpwnam(user)
    as_root = os.geteuid() == 0
    # The server inherits its output: a pipe would never end.
    with (folder / "out").open("ab") as out:
        done = subprocess.run(
            command,
            user=account.pw_uid if as_root else None,
            group=account.pw_gid if as_root else None,
            extra_groups=[] if as_root else None,
            cwd=folder,
            env={"PATH": os.defpath, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=SECONDS_TO_START + 10,
        )
    if check and done.returncode:
        shown = "\n".join(path.read_text() for path in (folder / "out", folder / "log") if path.exists())
        pytest.fail(f"{Path(command[0]).name} ended with {done.returncode}: {shown[-2000:]}")


def _user() -> str:
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid()).pw_name
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _programs() -> Path:
    folders = [Path(part) for part in os.environ.get("PATH", "").split(os.pathsep)]
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in (*installed, *folders):
        if all((folder / name).exists() for name in ("initdb", "pg_ctl", "postgres")):
            return folder
    cure = "PostgreSQL's programs are missing; on Debian: apt-get install postgresql"
    if os.environ.get("CI"):
        pytest.fail(cure)
    pytest.skip(cure)
