"""The face in front of the tools of the agent's tests."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

import pytest

from beckon_agent.api.http.streaming import StreamPace
from tests.agent.conftest import StartAgent
from tests.agent.responses.running_face import RunningFace, running_face
from tests.agent.running_agent import Setup
from tests.agent.scripted_model import Script


class StartFace(Protocol):
    """Starts the face with a scripted model."""

    def __call__(
        self, *script: Script, setup: Setup | None = None, pace: StreamPace | None = None
    ) -> AbstractAsyncContextManager[RunningFace]:
        """Serve until the end of the block."""
        ...


@pytest.fixture
def start_face(start_agent: StartAgent, tmp_path: Path) -> StartFace:
    """Start the face in front of an agent with the tools of the tests."""

    @asynccontextmanager
    async def start(
        *script: Script, setup: Setup | None = None, pace: StreamPace | None = None
    ) -> AsyncIterator[RunningFace]:
        async with start_agent(*script, setup=setup) as agent, running_face(agent, tmp_path, pace) as face:
            yield face

    return start
