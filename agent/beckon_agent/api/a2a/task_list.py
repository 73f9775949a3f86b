"""The list of a caller's tasks, the newest first."""

from a2a.types.a2a_pb2 import ListTasksRequest, ListTasksResponse, TaskState
from a2a.utils.constants import DEFAULT_LIST_TASKS_PAGE_SIZE
from a2a.utils.errors import InvalidParamsError
from a2a.utils.task import apply_history_length, validate_history_length, validate_page_size

from beckon_agent.api.a2a.calls import A2aCall
from beckon_agent.api.a2a.task_creation import conversation_of
from beckon_agent.api.a2a.tasks import FACE, read_task, state_of
from beckon_agent.core.records import RunFilter, RunSummary
from beckon_agent.store.base import Store

_PAGE = 100
_MOST_SEARCHED = 1000
"""The newest tasks that are searched; older ones are read by their ids."""
_NO_STATUS = ("", "UNRECOGNIZED")
"""What clients send for any status: ts-proto, and so the SDK of Node, writes the second for an unset enum."""


async def list_tasks(store: Store, params: ListTasksRequest, call: A2aCall) -> ListTasksResponse:
    """Return one page of the tasks of one agent that the filters leave."""
    validate_history_length(params)
    if call.wanted_status not in (*_NO_STATUS, *TaskState.keys()):
        known = ", ".join(TaskState.keys())
        raise InvalidParamsError(f"status: {call.wanted_status[:80]!r} is no state; it is one of {known}")
    size = DEFAULT_LIST_TASKS_PAGE_SIZE
    if params.HasField("page_size"):
        validate_page_size(params.page_size)
        size = params.page_size
    matching = [one for one in await _search_tasks(store, params, call) if _matches(one, params)]
    ids = [one.run.id for one in matching]
    if params.page_token and params.page_token not in ids:
        raise InvalidParamsError("pageToken: it is not of this list; begin again without it")
    first = ids.index(params.page_token) + 1 if params.page_token else 0
    page = ids[first : first + size]
    tasks = []
    for run_id in page:
        run = await store.runs.get(run_id)
        if run is not None:
            task = await read_task(store, run)
            if not params.include_artifacts:
                task.ClearField("artifacts")
            tasks.append(apply_history_length(task, params))
    return ListTasksResponse(
        tasks=tasks,
        next_page_token=page[-1] if first + size < len(ids) else "",
        page_size=size,
        total_size=len(ids),
    )


async def _search_tasks(store: Store, params: ListTasksRequest, call: A2aCall) -> list[RunSummary]:
    context = params.context_id
    if context:
        stored = await store.conversations.find(context)
        if stored is None or stored.owner != call.owner:
            context = conversation_of(call.owner, context)
    wanted = RunFilter(agent=call.hosted.name, conversation=context or None, face=FACE)
    runs: list[RunSummary] = []
    after = None
    while len(runs) < _MOST_SEARCHED:
        page = await store.history.list_runs(call.owner, wanted, after=after, most=_PAGE)
        runs += page
        if len(page) < _PAGE:
            break
        after = page[-1].run.id
    return runs


def _matches(summary: RunSummary, params: ListTasksRequest) -> bool:
    run = summary.run
    state = state_of(run.status, needs_person=summary.approvals + summary.inputs > 0)
    if params.status not in (TaskState.TASK_STATE_UNSPECIFIED, state):
        return False
    since: float = params.status_timestamp_after.ToNanoseconds() / 1e9
    return (run.ended_at or run.since or run.created_at) >= since
