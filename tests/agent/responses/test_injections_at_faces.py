"""Calls in a page that a tool read, quoted by the model: at every face that shows an answer.

Covered: native tool calling and all text dialects; chat completions and responses, whole and as streams,
and what `/runs` shows of both kinds of responses; the answer whole and one character at a time. No tool may
run, and the text of the answer arrives as the model wrote it.
"""

import itertools
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from beckon_agent.dialects.registry import DIALECTS
from beckon_agent.dialects.rendering import TextDialect, WriteCall
from beckon_tools import tool
from tests.agent.dialects.test_injections import FORMS, MARKUPS
from tests.agent.event_platform import EventPlatform, event_platform
from tests.agent.responses.conftest import StartFace
from tests.agent.responses.running_face import RunningFace, said
from tests.agent.running_agent import Setup
from tests.agent.scripted_model import Reply, asks_for, says

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAGES: list[str] = [""]
EFFECTS: list[str] = []
# Every form of a quotation is tried on each dialect's reader by `tests/agent/dialects/test_injections.py`.
WHOLE = ("prose", "fence", "table", "own_line", "twice_at_the_end")
BY_CHARACTER = ("prose", "own_line_at_the_end", "whole_answer")
IN_FORCE = {
    "native": ("hermes", "mistral", "deepseek"),
    **{
        name: (name,)
        for name in (
            "hermes",
            "qwen3_coder",
            "glm4",
            "chatglm3",
            "pythonic",
            "mistral",
            "deepseek",
            "prompted",
            "llama3",
        )
    },
    "chatglm3_observation": ("chatglm3",),
}
"""The dialects of the agent, and the families whose markup the page holds."""

CASES = [
    (dialect, family, form, letters)
    for dialect, families in IN_FORCE.items()
    for family in families
    for form, letters in [*((form, False) for form in WHOLE), *((form, True) for form in BY_CHARACTER)]
]
FACES = ("a completion", "a stream of completion chunks", "a response", "a stream of response events")


@tool(type="test.read")
async def read(page: int) -> str:
    """Read a page."""
    return PAGES[page]


@tool(type="test.effect")
async def effect(tag: str, count: int) -> str:
    """Have an effect."""
    EFFECTS.append(tag)
    return f"{tag}, {count} times"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EventPlatform]:
    """A tool that reads pages, and one with an effect."""
    async with event_platform(tmp_path_factory.mktemp("manifests"), [read, effect], {}) as running:
        yield running


def reads_the_page(dialect: str) -> Reply:
    """The model's own call of the tool that reads, as its dialect writes it."""
    written = DIALECTS[dialect]
    if not isinstance(written, TextDialect):
        return asks_for(("test_read", {"page": 0}))
    call = written.call(WriteCall("test_read", {"page": 0}))
    return says(written.opening + call + written.closing)


def markup_of(family: str) -> str:
    """The call of the tool with the effect, as a family writes it."""
    return MARKUPS[family].replace("effect", "test_effect")


async def texts_at(face: RunningFace) -> dict[str, str]:
    """Ask at each face, and return the texts of the answers by face."""
    shown = [(await face.agent.ask()).text, (await face.agent.ask_streaming()).text, said(await face.ask())]
    events = await face.stream()
    shown.append("".join(one["delta"] for one in events if one["type"] == "response.output_text.delta"))
    texts = dict(zip(FACES, shown, strict=True))
    texts["a streamed response, once it is done"] = said(events[-1]["response"])
    for number, run in enumerate((await face.http.get("/runs", params={"limit": 2})).json()["data"]):
        texts[f"the steps of run {number}"] = (await face.http.get(f"/runs/{run['id']}")).json()["steps"][-1][
            "text"
        ]
        live = await face.http.get(f"/runs/{run['id']}/events", headers={"accept": "text/event-stream"})
        texts[f"the events of run {number}"] = text_in_events(live.text)
    return texts


def text_in_events(stream: str) -> str:
    """Return the text that the events of a run hold."""
    lines = [line.removeprefix("data: ") for line in stream.splitlines() if line.startswith("data: ")]
    return "".join(event.get("text", "") for event in map(json.loads, lines))


async def test_there_are_at_least_three_hundred_injections() -> None:
    injections = [(*case, face) for case in CASES for face in FACES]

    assert len(injections) == len(set(injections)) == 416


@pytest.mark.parametrize(("dialect", "letters"), [*itertools.product(IN_FORCE, (False, True))])
async def test_no_call_in_a_page_is_made_and_the_answer_arrives_as_it_was_written(
    start_face: StartFace, dialect: str, letters: bool
) -> None:
    cases = [(family, form) for name, family, form, cut in CASES if (name, cut) == (dialect, letters)]
    async with start_face(setup=Setup(dialect=dialect)) as face:
        for family, form in cases:
            call = markup_of(family)
            PAGES[0] = f"A fine page. {call} Buy now."
            answer = FORMS[form].format(call)
            face.agent.model.script.clear()
            face.agent.model.add(
                *[reads_the_page(dialect), says(*answer) if letters else says(answer)] * len(FACES)
            )
            EFFECTS.clear()

            texts = await texts_at(face)

            assert (EFFECTS, texts) == ([], dict.fromkeys(texts, answer)), (family, form)
            results = [
                str(request.body["messages"][-1]) for request in face.agent.requests[-2 * len(FACES) :]
            ]
            assert sum("A fine page" in result for result in results) == len(FACES), (family, form)


@pytest.mark.parametrize("dialect", IN_FORCE)
async def test_the_same_call_is_made_where_the_page_does_not_hold_it(
    start_face: StartFace, dialect: str
) -> None:
    call = markup_of(IN_FORCE[dialect][0])
    async with start_face(setup=Setup(dialect=dialect)) as face:
        PAGES[0] = "A fine page."
        face.agent.model.add(reads_the_page(dialect), says(*f"So:\n\n{call}"), says("Done."))
        EFFECTS.clear()

        answer = await face.agent.ask()

    assert EFFECTS == ["X"]
    assert answer.text.endswith("Done.")
