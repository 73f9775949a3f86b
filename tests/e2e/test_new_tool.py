"""From nothing to the model calling a new tool, by the first commands of docs/write-a-tool.md."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.docs.blocks import every_block
from tests.docs.test_examples import assert_shows, environment, run
from tests.e2e.local_platform import LocalPlatform
from tests.patience import PATIENCE, wait_until

MAKE, ASK = every_block("console", "first")


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPlatform]:
    """A platform with nothing but a new tool, started as `beckon new tool` says."""
    where = tmp_path_factory.mktemp("new")
    ((make, lines),) = MAKE.commands
    assert_shows(run(make, where, environment({})), lines, make)
    running = LocalPlatform(Path("manifests"), where / "order-status", {})
    try:
        running.wait_until_ready()
        wait_until(lambda: running.tool_names() == {"order_status"})
        yield running
    finally:
        running.stop()


def test_a_new_tool_answers_the_question_that_its_maker_prints(
    platform: LocalPlatform, tmp_path: Path
) -> None:
    ((ask, lines),) = ASK.commands
    assert ask in "\n".join(MAKE.commands[0][1])

    assert_shows(run(ask, tmp_path, environment({"BECKON_PORT": str(platform.port)})), lines, ask)


def test_the_model_gets_what_the_tool_says_of_a_number_that_it_does_not_know(
    platform: LocalPlatform,
) -> None:
    question = [{"role": "user", "content": "What is the order status of 9?"}]
    request = {"model": "beckon", "messages": question}
    answer = httpx.post(f"{platform.url}/v1/chat/completions", json=request, timeout=PATIENCE).json()

    assert "there is no 9" in answer["choices"][0]["message"]["content"]
