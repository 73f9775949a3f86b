"""APIs that know nothing of events, behind the HTTP adapter, in the local platform as its user sees it."""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.e2e.conftest import EXAMPLES, Start, Workbench
from tests.e2e.local_platform import LocalPlatform
from tests.patience import wait_until

EXAMPLE = EXAMPLES / "http-library"


def called(platform: LocalPlatform, name: str, **arguments: object) -> dict[str, Any]:
    answer = httpx.post(f"{platform.url}/tools/{name}", json=arguments, timeout=50)
    found: dict[str, Any] = answer.json()
    return found


def example() -> dict[str, str]:
    """Return the example's manifests by the names of their files."""
    return {file.stem: file.read_text() for file in EXAMPLE.iterdir()}


@pytest.fixture(scope="module")
def library(start_platform: Start) -> LocalPlatform:
    """A platform on the example's own folder."""
    return start_platform(EXAMPLE)


def test_the_example_makes_tools_of_an_api_without_code(library: LocalPlatform) -> None:
    found = called(library, "find_books", subject="physics")
    reserved = called(library, "reserve_book", id=3, reader="Ann")
    lent = called(library, "reserve_book", id=2, reader="Ann")
    absent = called(library, "reserve_book", id=99, reader="Ann")

    assert found.get("result") == [
        {"id": 2, "title": "Opticks", "author": "Isaac Newton", "lent": True},
        {"id": 4, "title": "Relativity", "author": "Albert Einstein", "lent": False},
    ], found
    assert reserved["result"] == {"reserved": "Elements", "reader": "Ann"}
    assert "answered 409: Opticks is lent" in json.dumps(lent)
    assert "answered 404: there is no book 99" in json.dumps(absent)


def test_a_model_calls_an_api_by_its_eventtype(library: LocalPlatform) -> None:
    answer = httpx.post(
        f"{library.url}/v1/chat/completions",
        json={
            "model": "beckon",
            "messages": [{"role": "user", "content": "Find books"}],
        },
        timeout=50,
    )

    assert 'find_books: [{"id": 1' in answer.json()["choices"][0]["message"]["content"]


def test_rules_come_change_and_break_with_no_restart(workbench: Workbench) -> None:
    platform = workbench.platform

    with workbench.tools("find_books", "reserve_book", **example()) as folder:
        wait_until(lambda: len(called(platform, "find_books").get("result") or ()) == 4)

        file = folder / "eventtypes.yaml"
        written = file.read_text()
        file.write_text(
            written.replace('"books[].{id: id, title: title, author: author, lent: lent}"', "count")
        )
        wait_until(lambda: called(platform, "find_books").get("result") == 4)

        file.write_text(written.replace('author: "{author}"', 'shelf: "{author}"'))
        wait_until(lambda: called(platform, "find_books", author="Euclid").get("status") == 422)
        refused = called(platform, "find_books", author="Euclid")
        assert refused["reason"] == "invalid_arguments"
        assert "answered 400: books are not found by shelf; use subject or author" in refused["detail"]

        file.write_text(written.replace("/books\n", "/{shelf}\n"))
        wait_until(lambda: "names the argument 'shelf'" in json.dumps(called(platform, "find_books")))
        assert (
            "names the argument 'shelf', which does not exist; the parameters are author, subject"
            in platform.text()
        )


SLOW_ADAPTER = """
import runpy, time

time.sleep(7)  # longer than a Broker tries to deliver a call
runpy.run_module("beckon_adapter", run_name="__main__")
"""


def test_a_tool_of_the_adapter_is_offered_only_when_the_adapter_answers(
    workbench: Workbench, tmp_path: Path
) -> None:
    program = tmp_path / "slow.py"
    program.write_text(SLOW_ADAPTER)
    service = {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": {
            "namespace": "beckon",
            "name": "beckon-adapter",
            "annotations": {"beckon.dev/local-command": f"{sys.executable} {program}"},
        },
    }

    with workbench.tools("find_books", "reserve_book", adapter=yaml.safe_dump(service), **example()):
        found = called(workbench.platform, "find_books")

    assert len(found.get("result") or ()) == 4, found


GATED_LIBRARY = """
import pathlib, sys, time
from beckon_adapter.library import main

while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.02)
sys.exit(main())
"""


def test_a_call_waits_for_an_api_that_starts(workbench: Workbench, tmp_path: Path) -> None:
    (program := tmp_path / "gated.py").write_text(GATED_LIBRARY)
    gate = tmp_path / "open"
    gated = {
        name: text.replace("python -m beckon_adapter.library", f"{sys.executable} {program} {gate}", 1)
        for name, text in example().items()
    }

    with workbench.tools("find_books", "reserve_book", **gated), ThreadPoolExecutor(1) as threads:
        answering = threads.submit(called, workbench.platform, "find_books")
        time.sleep(0.5)  # the first delivery comes before the API
        gate.touch()
        found = answering.result()

    assert len(found.get("result") or ()) == 4, found


def test_an_api_that_does_not_run_here_is_named(workbench: Workbench) -> None:
    idle = {name: text.replace("beckon.dev/local-command", "team") for name, text in example().items()}

    with workbench.tools("find_books", "reserve_book", **idle):
        shown = json.dumps(called(workbench.platform, "find_books"))

    assert "http://library.default.svc.cluster.local:80: its Service has no address here" in shown


def test_a_host_that_no_one_allowed_is_not_called(workbench: Workbench) -> None:
    elsewhere = {
        name: text.replace("http://library.default.svc.cluster.local", "https://api.example.com")
        for name, text in example().items()
    }

    with workbench.tools("find_books", "reserve_book", **elsewhere):
        shown = json.dumps(called(workbench.platform, "find_books"))

    assert "may not call api.example.com" in shown
    assert "BECKON_ADAPTER_ALLOWED_HOSTS" in shown
