"""Whatever a model says and asks for, its run is replayed as it was."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.agent.replay.conftest import StartService
from tests.agent.replay.replaying import ended
from tests.agent.scripted_model import Reply, calls, chunk, fragment, streamed

pytestmark = pytest.mark.asyncio(loop_scope="module")

WORDS = st.text(
    st.characters(codec="utf-8", exclude_characters="<[{`|"),
    min_size=1,
    max_size=8,
)
ARGUMENTS = st.one_of(
    st.builds(lambda text, count: json.dumps({"text": text, "count": count}), WORDS, st.integers(0, 3)),
    st.sampled_from(
        ['{"text": "a"', '{"text": "a"}{"text": "b"}', "", "null", '{"txt": 1}', "{'text': 'x'}"]
    ),
    st.text(max_size=10),
)
NAMES = st.sampled_from(["test_echo", "test_echo", "test_nap", "test_fail", "test_ecko", "", "test_picture"])
CALLS = st.lists(st.tuples(NAMES, ARGUMENTS), max_size=4)
TURNS = st.lists(
    st.tuples(
        st.lists(st.tuples(st.sampled_from(["content", "reasoning_content"]), WORDS), max_size=4),
        CALLS,
        st.sampled_from(["stop", "tool_calls", "length", "content_filter", None]),
    ),
    min_size=1,
    max_size=4,
)

Answer = tuple[list[tuple[str, str]], list[tuple[str, str]], str | None]


def reply(
    pieces: Sequence[tuple[str, str]], request: Sequence[tuple[str, str]], finish: str | None, step: int
) -> Reply:
    """Return an answer of the model."""
    fragments = (
        fragment(index, f"call_{step}_{index}", name, text) for index, (name, text) in enumerate(request)
    )
    usage = {"prompt_tokens": step, "completion_tokens": len(pieces)}
    return streamed(
        *(chunk({kind: text}) for kind, text in pieces),
        *map(calls, fragments),
        chunk(finish=finish, usage=usage),
    )


@pytest.mark.timeout(300)
@given(turns=TURNS)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
async def test_any_run_is_replayed_as_it_was(start_service: StartService, turns: list[Answer]) -> None:
    script = [reply(pieces, request, finish, step) for step, (pieces, request, finish) in enumerate(turns)]
    async with start_service(*script) as service:
        run = await service.run(background=True)  # one that fails has an id, too
        await ended(service, run)

        report = await service.same(run)

    assert report["requests_unknown"] == 0
