"""Which Tools the operator writes, at an API server that has seen more than its watches have reported."""

import asyncio
import contextlib
from collections.abc import Callable

import pytest

from beckon_operator.k8s_events import EventRecorder
from beckon_operator.metrics import Metrics
from beckon_operator.objects import EVENT_TYPES
from beckon_operator.writer import Writer
from tests.operator.documents import event_type
from tests.operator.judged import Judged
from tests.operator.test_desired_state import KEY, ROUTE
from tests.patience import until
from tests.sources.api_server import ApiServer, api_server

STORED_EVENT_TYPE = ("eventtypes", *KEY)
TOOL = ("tools", *KEY)


async def write_tools(judged: Judged, server: ApiServer, done: Callable[[], bool]) -> None:
    """Write the queued Tools until this is true, and judge again."""
    metrics, desired = Metrics(), judged.desired
    async with server.client() as api:
        recorder = EventRecorder(api, metrics, "beckon-operator-0")
        writer = Writer(api, judged.judge.cluster, desired, lambda: True, recorder)
        task = asyncio.create_task(writer.write_queued(1, metrics))
        await until(done)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    judged.judge.judge_all()


async def test_a_deleted_tool_is_written_again() -> None:
    judged = Judged(*ROUTE, event_type())
    async with api_server() as server:
        server.objects[STORED_EVENT_TYPE] = event_type()
        await write_tools(judged, server, lambda: judged.desired.tools.find_object(*KEY) is not None)
        first = server.objects.pop(TOOL)
        judged.lose({**first, "kind": "Tool"})
        await write_tools(judged, server, lambda: judged.desired.tools.find_object(*KEY) is not None)

        assert server.objects[TOOL]["metadata"]["uid"] != first["metadata"]["uid"]


@pytest.mark.parametrize("later", [None, "uid-of-the-next"])
async def test_no_tool_is_written_for_an_event_type_that_is_gone(later: str | None) -> None:
    judged = Judged(*ROUTE, event_type())
    event_types = judged.judge.cluster.objects_of(EVENT_TYPES)
    async with api_server() as server:
        if later:
            server.objects[STORED_EVENT_TYPE] = event_type(uid=later)
        await write_tools(judged, server, lambda: event_types.find_object(*KEY) is None)

        assert TOOL not in server.objects
        assert judged.desired.wanted_tool(*KEY) is None

        judged.see(event_type())  # a report from before the deletion
        assert judged.desired.wanted_tool(*KEY) is None
