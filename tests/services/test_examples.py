"""The examples in Go, Java and JavaScript are tools, with the manifests as they are."""

import os
import shutil
from collections.abc import Iterator

import httpx
import pytest

from tests.e2e.local_platform import ROOT, LocalPlatform
from tests.patience import PATIENCE, wait_until

PROGRAMS = {"go": "go", "java": "mvn", "node": "node"}


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPlatform]:
    """A platform that was started in a copy of the checkout, since a build writes beside its sources."""
    if "BECKON_TEST_SERVICES" not in os.environ:
        pytest.skip("tests/services/services.sh builds them, and runs these tests")
    work = tmp_path_factory.mktemp("examples")
    shutil.copytree(ROOT / "examples", work / "examples")
    running = LocalPlatform(work / "examples", work, {})
    try:
        running.wait_until_ready()
        yield running
    finally:
        running.stop()


@pytest.mark.parametrize("language", PROGRAMS)
def test_an_example_answers_calls_and_corrects_them(platform: LocalPlatform, language: str) -> None:
    if shutil.which(PROGRAMS[language]) is None:
        assert "CI" not in os.environ, f"{PROGRAMS[language]} is missing"
        pytest.skip(f"{PROGRAMS[language]} is not installed")
    name = f"roman_{language}"
    wait_until(lambda: name in platform.tool_names(), PATIENCE)

    answers = [
        httpx.post(f"{platform.url}/tools/{name}", json={"number": number}, timeout=PATIENCE)
        for number in (1987, 3999)
    ]

    assert [answer.json().get("result") for answer in answers] == [
        {"roman": "MCMLXXXVII"},
        {"roman": "MMMCMXCIX"},
    ]
