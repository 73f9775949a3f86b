"""The OpenAPI description, tried by schemathesis against the platform as a user starts it.

`make fuzz` tries many requests for each operation, other ones every time; without it they are few, and the
same every time.
"""

import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.e2e.conftest import Start
from tests.e2e.local_platform import LocalPlatform, clean_environment
from tests.patience import PATIENCE

EXAMPLES = os.environ.get("FUZZ_EXAMPLES")
SCHEMATHESIS = Path(sys.executable).parent / "schemathesis"
CONFIG = Path(__file__).with_name("schemathesis.toml")


@pytest.fixture(scope="module")
def platform(start_platform: Start) -> LocalPlatform:
    """A platform that no other module's tests share, because it is filled with requests."""
    return start_platform()


@pytest.mark.timeout(7200 if EXAMPLES else 400)
def test_what_is_answered_is_what_the_description_says(platform: LocalPlatform, tmp_path: Path) -> None:
    how = ["--max-examples", EXAMPLES] if EXAMPLES else ["--max-examples=4", "--generation-deterministic"]
    found = subprocess.run(
        [SCHEMATHESIS, "--config-file", CONFIG, "run", f"{platform.url}/openapi.json", *how],
        env=clean_environment({}),  # has the root in PYTHONPATH, for the hooks
        cwd=tmp_path,  # it leaves its cache where it runs
        capture_output=True,
        text=True,
        check=False,
    )

    said = found.stdout + found.stderr
    assert found.returncode == 0, said
    description = httpx.get(f"{platform.url}/openapi.json", timeout=PATIENCE).json()
    operations = sum(map(len, description["paths"].values()))
    assert f"Operations:       {operations} selected / {operations} total" in said
    assert "Traceback" not in platform.text()


def test_the_description_names_every_operation(platform: LocalPlatform) -> None:
    description = httpx.get(f"{platform.url}/openapi.json", timeout=PATIENCE).json()
    operations = [
        (path, operation) for path, methods in description["paths"].items() for operation in methods.values()
    ]

    names = [operation["operationId"] for _, operation in operations]
    assert len(set(names)) == len(names)
    # Made names hold the path and change with it: generated clients would change as well.
    assert not [name for name in names if "_" in name]
    # Anyone who is asked by a probe answers nothing but 200 and 503.
    probes = {"/healthz", "/readyz", "/metrics"}
    assert not [
        path for path, said in operations if path not in probes and "default" not in said["responses"]
    ]


def test_the_description_has_a_schema_of_every_json_answer(platform: LocalPlatform) -> None:
    description = httpx.get(f"{platform.url}/openapi.json", timeout=PATIENCE).json()
    events = {"/events", "/events/{agent}"}  # the data of a reply event is the agent's answer
    answers = [
        (path, method, status, content["application/json"].get("schema"))
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
        for status, answer in operation["responses"].items()
        if "application/json" in (content := answer.get("content", {})) and path not in events
    ]

    assert len(answers) > 50
    assert not [answer[:3] for answer in answers if not answer[3]]
    documents = [schema for _, _, status, schema in answers if status == "200"]
    assert not [schema for schema in documents if not schema.keys() & {"$ref", "anyOf"}]
    schemas = description["components"]["schemas"]
    assert schemas["ResponseDocument"]["properties"]["output"]["items"]["anyOf"]
    assert not [name for name in schemas if "__" in name]  # two classes of one name get their modules' names
