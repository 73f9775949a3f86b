"""A local platform for as long as it is needed."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from rich.text import Text

from beckon_cli.errors import CommandError
from beckon_cli.local.platform import Platform
from beckon_cli.output import err
from beckon_cli.settings import Settings


@contextlib.asynccontextmanager
async def running_platform(
    settings: Settings, *, watch: bool = False, durable: bool = False
) -> AsyncIterator[Platform]:
    """Yield a running platform, and stop it in every case.

    It follows its manifests, and with `watch` the code of its tools; with `durable` it has a NATS server of
    its own, unless the settings name one. Raises `CommandError` if the folder of
    the manifests is missing.
    """
    if not settings.manifests.is_dir():
        cure = "name one with --manifests (beckon up) or BECKON_MANIFESTS"
        raise CommandError(f"there is no folder {settings.manifests}; {cure}", status=2)
    status = err.status("starting the local platform …")
    platform = Platform(
        settings, report=lambda line: status.update(Text(f"{line} …")), watch=watch, durable=durable
    )
    try:
        platform.start()  # before the status, whose thread would hinder a fork
        with status:
            await platform.wait_until_ready()
    except BaseException:
        await asyncio.shield(platform.stop())
        raise
    following = asyncio.create_task(platform.follow())
    try:
        yield platform
    finally:
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following
        await asyncio.shield(platform.stop())
