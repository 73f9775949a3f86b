import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from beckon_agent.store import migrations
from beckon_agent.store.base import Store, StoreRefused, StoreUnavailable
from beckon_agent.store.sql.database import Database, Result
from beckon_agent.store.sql.open import database_at, open_store, update_schema
from beckon_agent.store.sql.tables import metadata
from tests.agent.store import revision_0001
from tests.agent.store.examples import ME, begun, ended, said
from tests.agent.store.raw import count, execute

SECRET = "s3cret"


def test_the_newest_revision_is_the_one_that_is_named() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))

    assert ScriptDirectory.from_config(config).get_heads() == [migrations.HEAD]


async def test_the_revisions_lead_to_what_the_tables_say(empty: str) -> None:
    await _upgraded_from_the_first(database_at(empty))

    assert await _read(empty, _differences) == []


async def test_an_empty_database_becomes_what_the_revisions_lead_to(empty: str, another_empty: str) -> None:
    await (await open_store(empty)).aclose()
    await _upgraded_from_the_first(database_at(another_empty))

    assert await _read(empty, _reflected) == await _read(another_empty, _reflected)
    assert await _read(empty, _differences) == []


NEXT_REVISION = """
import sqlalchemy as sa
from alembic import op

revision = "9998"
down_revision = "0006"


def upgrade() -> None:
    op.add_column("runs", sa.Column("later", sa.Integer, nullable=False, server_default="5"))
"""


async def test_a_database_of_an_older_revision_keeps_what_it_holds(
    empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_store(empty)
    await begun(store, "r1")
    await store.aclose()
    own = Path(migrations.__file__).parent
    newer = shutil.copytree(own, tmp_path / "migrations", ignore=shutil.ignore_patterns("__pycache__"))
    (newer / "versions" / "r9998_later.py").write_text(NEXT_REVISION)
    monkeypatch.setattr(migrations, "__file__", str(newer / "__init__.py"))
    monkeypatch.setattr(migrations, "HEAD", "9998")

    store = await open_store(empty)

    assert (run := await store.runs.get("r1")) is not None
    assert run.holder == ME
    assert await execute(empty, "SELECT later FROM runs") == [(5,)]
    assert await execute(empty, "SELECT version_num FROM beckon_schema") == [("9998",)]
    await store.aclose()


async def test_a_database_of_a_newer_version_is_refused_and_left_alone(empty: str) -> None:
    store = await open_store(empty)
    await begun(store, "r1")
    await store.aclose()
    await execute(empty, "UPDATE beckon_schema SET version_num = '9999'")

    with pytest.raises(
        StoreRefused, match=f"is of a newer Beckon: its schema is 9999, .* up to {migrations.HEAD}; .*$"
    ):
        await open_store(empty)

    assert await execute(empty, "SELECT version_num FROM beckon_schema") == [("9999",)]
    assert await count(empty, "runs") == 1


async def test_a_database_of_another_program_is_refused_and_left_alone(empty: str) -> None:
    await execute(empty, "CREATE TABLE runs (theirs integer)")

    with pytest.raises(StoreRefused, match="give Beckon a database of its own"):
        await open_store(empty)

    assert await count(empty, "runs") == 0
    with pytest.raises(Exception, match="segments"):
        await count(empty, "segments")


async def test_what_was_stored_is_there_after_a_restart(empty: str) -> None:
    store = await open_store(empty)
    await ended(store, "r1")
    await store.aclose()

    again = await open_store(empty)

    assert await again.runs.load_messages("r1") == [said("ask r1")]
    await again.aclose()


async def test_a_store_in_memory_is_one_for_all_its_users() -> None:
    store = await open_store("sqlite://")
    await begun(store, "r1")

    run = await store.runs.get("r1")

    assert run is not None
    assert run.holder == ME
    await store.aclose()


async def test_a_file_is_for_its_owner_alone_and_so_is_the_folder_that_is_made_for_it(tmp_path: Path) -> None:
    store = await open_store(f"sqlite:///{tmp_path}/new/store.db")
    await begun(store, "r1")

    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "new").iterdir()}

    assert modes == {"store.db": 0o600, "store.db-wal": 0o600, "store.db-shm": 0o600}
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    await store.aclose()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["store.db"]


@pytest.mark.parametrize(
    "url",
    [
        f"mysql://ann:{SECRET}@host/db",
        f"postgresql+psycopg://ann:{SECRET}@host/db",
        f"ann:{SECRET}@host",
        f"postgresql://ann:{SECRET}@host:{SECRET}/db",
        f"postgresql://ann:{SECRET}/x@host/db",
        f"postgresql://ann:{SECRET}@host/db?sslmode={SECRET}",
        "sqlite://host/file",
        "sqlite:///file?mode=ro",
        "sqlite+aiosqlite:///file",
        "",
    ],
)
async def test_an_address_that_cannot_be_used_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(StoreRefused) as refused:
        await open_store(url)

    assert re.search(r"write .*sqlite:///FILE", str(refused.value))
    assert SECRET not in str(refused.value)


async def test_a_file_that_cannot_be_written_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")

    for path in (tmp_path, tmp_path / "file" / "store.db"):
        with pytest.raises(StoreRefused, match=re.escape(str(path))):
            await open_store(f"sqlite:///{path}")


async def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear Ann, " * 1000)

    with pytest.raises(StoreRefused, match="file is not a database"):
        await open_store(f"sqlite:///{letter}")

    assert letter.read_text() == "Dear Ann, " * 1000


async def test_a_server_that_does_not_answer_is_reported_without_its_password() -> None:
    with pytest.raises(StoreUnavailable) as failed:
        await open_store(f"postgresql://ann:{SECRET}@127.0.0.1:9/db")

    assert SECRET not in str(failed.value)
    assert "the database does not answer: " in str(failed.value)


async def test_a_database_that_a_server_does_not_have_is_reported_by_name(store: Store, url: str) -> None:
    if url.startswith("sqlite"):
        return

    with pytest.raises(StoreUnavailable, match='database "elsewhere" does not exist'):
        await open_store(re.sub(r"@/\w+", "@/elsewhere", url))


async def _upgraded_from_the_first(database: Database) -> None:
    await database.write(_create_first_tables)
    await database.write(update_schema)
    await database.aclose()


def _create_first_tables(connection: Connection) -> None:
    context = MigrationContext.configure(connection, opts={"version_table": migrations.VERSION_TABLE})
    with Operations.context(context):
        revision_0001.create_tables()
    context.stamp(ScriptDirectory(str(Path(migrations.__file__).parent)), "0001")


def _differences(connection: Connection) -> list[object]:
    context = MigrationContext.configure(connection, opts={"version_table": migrations.VERSION_TABLE})
    return list(compare_metadata(context, metadata))


def _reflected(connection: Connection) -> dict[str, object]:
    """Return all that a database says of its tables, and the revision that it is at."""
    inspector = inspect(connection)
    kinds = (
        inspector.get_multi_columns,
        inspector.get_multi_pk_constraint,
        inspector.get_multi_foreign_keys,
        inspector.get_multi_indexes,
        inspector.get_multi_unique_constraints,
        inspector.get_multi_check_constraints,
    )
    shown: dict[str, object] = {kind.__name__: _plain(kind()) for kind in kinds}
    version = connection.exec_driver_sql(f"SELECT * FROM {migrations.VERSION_TABLE}").all()
    return shown | {"version": [tuple(row) for row in version]}


def _plain(value: object) -> object:
    """Return what can be compared: conditions and types as text, and lists without their order."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return sorted((_plain(inner) for inner in value), key=str)
    return value if value is None or isinstance(value, bool) else str(value)


async def _read(url: str, work: Callable[[Connection], Result]) -> Result:
    database = database_at(url)
    try:
        return await database.read(work)
    finally:
        await database.aclose()
