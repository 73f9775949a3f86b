"""`beckon chat` as a conversation: what was said before counts, until `/new`."""

import subprocess
import sys
from pathlib import Path

from tests.agent.scripted_model import says
from tests.e2e.conftest import Start
from tests.e2e.local_platform import clean_environment
from tests.e2e.model_thread import model_thread


def test_a_conversation_is_remembered_and_new_forgets_it(start_platform: Start, tmp_path: Path) -> None:
    with model_thread() as model:
        platform = start_platform(tmp_path, OPENAI_BASE_URL=model.base_url, BECKON_MODEL="scripted")
        model.play(says("one"), says("two"), says("three"))

        ended = subprocess.run(
            [sys.executable, "-m", "beckon_cli", "chat"],
            env=clean_environment({"BECKON_PORT": str(platform.port)}),
            input="first\nsecond\n/new\nthird\n",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        request = [
            [message["content"] for message in body["messages"] if message["role"] != "system"]
            for body in model.bodies
        ]

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == ["one", "two", "three"]
    assert request == [["first"], ["first", "one", "second"], ["third"]]
