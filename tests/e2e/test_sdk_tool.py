"""A tool of the SDK on a real platform: refusals that the model can act on, and progress."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from beckon_contract.cloudevents.events import CloudEvent
from tests.broker.subscribers import subscriber
from tests.e2e.local_platform import LocalPlatform
from tests.e2e.sdk_tool import platform_with
from tests.patience import PATIENCE

PAGES = '''
from typing import Annotated

from pydantic import AfterValidator

from pathlib import Path

from beckon_tools import Hints, Progress, tool


def even(pages: int) -> int:
    if pages % 2:
        raise ValueError("a sheet has two pages; write an even number")
    return pages


@tool(type="pages.write")
async def write_pages(pages: Annotated[int, AfterValidator(even)], progress: Progress) -> str:
    """Write pages."""
    for page in range(pages):
        await progress.report(page + 1, pages)
    return f"{pages} pages"


@tool(type="card.charge")
def charge(book: str) -> None:
    """Charge the card, and fail after that."""
    with Path(book).open("a") as written:
        written.write("charged\\n")
    raise RuntimeError("the receipt printer burns")


@tool(type="card.look", hints=Hints(idempotent=True))
def look(book: str) -> None:
    """Look at the card, in vain."""
    with Path(book).open("a") as written:
        written.write("looked\\n")
    raise RuntimeError("the reader is dirty")
'''
BROKER = {
    "apiVersion": "eventing.knative.dev/v1",
    "kind": "Broker",
    "metadata": {"name": "default", "namespace": "default"},
    "spec": {"delivery": {"retry": 5, "backoffPolicy": "linear", "backoffDelay": "PT0.05S"}},
}


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPlatform]:
    """A platform with a tool of the SDK's, its manifests as they are printed."""
    work = tmp_path_factory.mktemp("sdk")
    (work / "manifests").mkdir()
    (work / "manifests" / "broker.json").write_text(json.dumps(BROKER))
    with platform_with(work, PAGES, "write_pages", "charge", "look") as running:
        yield running


async def called(platform: LocalPlatform, pages: int) -> dict[str, Any]:
    return await answer_of(platform, "pages_write", {"pages": pages})


async def answer_of(platform: LocalPlatform, tool: str, arguments: dict[str, object]) -> dict[str, Any]:
    async with httpx.AsyncClient(timeout=PATIENCE) as client:
        response = await client.post(f"{platform.url}/tools/{tool}", json=arguments)
    answer: dict[str, Any] = response.json()
    return answer


async def test_a_function_that_raises_runs_once_and_its_caller_reads_why(
    platform: LocalPlatform, tmp_path: Path
) -> None:
    book = tmp_path / "book"
    answer = await answer_of(platform, "card_charge", {"book": str(book)})

    assert answer["reason"] == "tool_failed"
    assert "RuntimeError: the receipt printer burns" in str(answer)
    assert "Traceback" not in str(answer)
    assert book.read_text() == "charged\n"


async def test_an_idempotent_function_that_raises_is_tried_again_and_the_dead_letter_says_why(
    platform: LocalPlatform, tmp_path: Path
) -> None:
    book = tmp_path / "book"
    answer = await answer_of(platform, "card_look", {"book": str(book)})

    assert answer["reason"] == "tool_failed"
    assert "RuntimeError: the reader is dirty" in str(answer)
    assert book.read_text() == "looked\n" * 6


async def test_what_only_the_tool_can_refuse_is_reported_with_what_to_change(platform: LocalPlatform) -> None:
    answer = await called(platform, 3)

    assert answer["reason"] == "invalid_arguments"
    assert "pages: a sheet has two pages; write an even number" in str(answer)


def observing(url: str) -> str:
    trigger = {
        "apiVersion": "eventing.knative.dev/v1",
        "kind": "Trigger",
        "metadata": {"name": "progress"},
        "spec": {
            "broker": "default",
            "filter": {"attributes": {"beckonstate": "progress"}},
            "subscriber": {"uri": url},
        },
    }
    return yaml.safe_dump(trigger)


async def test_who_has_a_trigger_on_progress_sees_it_and_the_answer_is_the_result(
    platform: LocalPlatform,
) -> None:
    async with subscriber() as observer:
        (platform.folder / "progress.yaml").write_text(observing(observer.url))
        for _ in itertools.takewhile(lambda _: len(observer.requests) < 4, range(50)):
            assert (await called(platform, 4))["result"] == "4 pages"
        reports = await observer.wait(4)

    by_call: dict[object, list[CloudEvent]] = {}
    for report in reports:
        by_call.setdefault(report.event.extensions["causationid"], []).append(report.event)
    (first, *_) = (found for found in by_call.values() if len(found) == 4)
    assert {event.type for event in first} == {"pages.write.progress"}
    assert sorted(str(event.json()) for event in first) == [
        str({"progress": page, "total": 4}) for page in (1, 2, 3, 4)
    ]
