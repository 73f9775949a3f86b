"""The client of the tests."""

from collections.abc import AsyncIterator

import pytest

from beckon_runtime.post_client import PostClient


@pytest.fixture
async def client() -> AsyncIterator[PostClient]:
    client = PostClient(5)
    yield client
    await client.close()
