"""A TLS port: its certificate from files, and connections before their handshake."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from beckon_runtime.certificates import CertificateFolder, CertificateUnusable
from tests.certified import Certified
from tests.patience import eventually, until
from tests.runtime.test_asgi import GET, serve


@pytest.fixture
def certified(tmp_path: Path) -> Certified:
    return Certified.issue(tmp_path)


@contextlib.asynccontextmanager
async def followed(certified: Certified) -> AsyncIterator[CertificateFolder]:
    """Follow the changes of a folder, many times a second."""
    folder = CertificateFolder(certified.folder)
    following = asyncio.create_task(folder.follow_changes(seconds=0.02))
    try:
        yield folder
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def test_a_renewed_certificate_is_served_to_new_connections(certified: Certified) -> None:
    async with serve(tls=certified) as server:

        async def read_certificate() -> bytes:
            client = await server.connect()
            found: bytes = client.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            return found

        first = await read_certificate()
        certified.renew()

        async def is_new() -> bool:
            return await read_certificate() != first

        await eventually(is_new)


async def test_a_key_of_another_certificate_leaves_the_old_one_in_use(
    certified: Certified, caplog: pytest.LogCaptureFixture
) -> None:
    key = (certified.folder / "tls.key").read_bytes()
    async with followed(certified) as folder:
        first = folder.context
        certified.renew()
        certified.replace("tls.key", key)
        await until(lambda: "key values mismatch" in caplog.text)
        certified.replace("tls.crt", b"")
        await until(lambda: "no certificate" in caplog.text)
        (certified.folder / "tls.crt").unlink()
        await until(lambda: "No such file" in caplog.text)
        assert folder.context is first
        certified.renew()
        await until(lambda: folder.context is not first)

    assert "the new certificate is not served" in caplog.text
    assert len(caplog.records) < 8


@pytest.mark.parametrize("name", ["tls.crt", "tls.key"])
def test_a_folder_without_a_file_names_it(certified: Certified, name: str) -> None:
    (certified.folder / name).unlink()

    with pytest.raises(CertificateUnusable, match=rf"{name}: No such file"):
        CertificateFolder(certified.folder)


async def test_a_client_that_never_shakes_hands_is_closed_in_time(certified: Certified) -> None:
    async with serve(tls=certified, receive_seconds=0.1) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)

        assert await asyncio.wait_for(reader.read(), 20) == b""
        writer.close()
        assert await server.status() == 200


async def test_clients_that_never_shake_hands_leave_room_for_others(certified: Certified) -> None:
    async with serve(tls=certified, total=10, per_client=1000) as server:
        silent = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(40)]

        assert await server.status() == 200
        assert await silent[0][0].read() == b""
        for _, writer in silent:
            writer.close()


async def test_plain_http_gets_no_answer(certified: Certified) -> None:
    async with serve(tls=certified) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(GET)

        assert b"HTTP" not in await reader.read()
        assert await server.status() == 200
        writer.close()
