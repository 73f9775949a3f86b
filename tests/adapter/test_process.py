"""The adapter as the process that it is: its settings, its log, its traces, its end."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import yaml

from beckon_contract.cloudevents.events import CloudEvent, to_binary
from tests.adapter.plain_api import PlainApi, api_answer, serving
from tests.agent.telemetry.collector import collector
from tests.e2e.local_platform import clean_environment, port_range
from tests.patience import PATIENCE, eventually
from tests.tools.serving import call

ROOT = Path(__file__).resolve().parents[3]
SECRET = "s3cr3t-of-the-owner"


@dataclass
class Adapter:
    """An adapter that runs; `log` is what it said, known once it has ended."""

    url: str
    process: asyncio.subprocess.Process
    log: str = ""

    async def post(self, event: CloudEvent) -> httpx.Response:
        headers, body = to_binary(event)
        async with httpx.AsyncClient(timeout=PATIENCE) as client:
            return await client.post(self.url, headers=headers, content=body)


@asynccontextmanager
async def running(settings: Mapping[str, str]) -> AsyncIterator[Adapter]:
    """Run an adapter until it is ready, and end it as Kubernetes does."""
    port = port_range()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "beckon_adapter"),
        env=clean_environment({"PORT": str(port), **settings}),
        cwd=ROOT,
        stderr=asyncio.subprocess.PIPE,
    )
    adapter = Adapter(f"http://127.0.0.1:{port}/", process)
    try:
        await _ready(adapter)
        yield adapter
    finally:
        process.send_signal(signal.SIGTERM)
        _, said = await asyncio.wait_for(process.communicate(), PATIENCE)
        adapter.log = said.decode()


async def _ready(adapter: Adapter) -> None:
    async with httpx.AsyncClient(timeout=PATIENCE) as client, asyncio.timeout(PATIENCE):
        while True:
            try:
                if (await client.get(f"{adapter.url}readyz")).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.05)


def write(folder: Path, port: int, **rule: object) -> None:
    """Write an EventType that leads to an API on loopback."""
    write_event_type(folder, "beckon.dev/http", {"url": f"http://127.0.0.1:{port}/ask", **rule})


def write_event_type(folder: Path, annotation: str, rule: Mapping[str, object]) -> None:
    """Write an EventType with a rule for the adapter."""
    document = {
        "apiVersion": "eventing.knative.dev/v1beta2",
        "kind": "EventType",
        "metadata": {
            "name": "asked",
            "annotations": {annotation: json.dumps(rule), "beckon.dev/parameters": "{}"},
        },
        "spec": {"type": "api.asked", "description": "Ask."},
    }
    (folder / "asked.yaml").write_text(yaml.safe_dump(document))


def allowing(port: int, folder: Path, **more: str) -> dict[str, str]:
    host = {"host": f"http://127.0.0.1:{port}", "private": True}
    return {"BECKON_MANIFESTS": str(folder), "BECKON_ADAPTER_ALLOWED_HOSTS": json.dumps([host]), **more}


@pytest.mark.parametrize("kind", ["query", "bearer"])
async def test_a_secret_is_in_no_answer_no_log_and_no_trace(kind: str, tmp_path: Path) -> None:
    answers = [
        api_answer({"message": f"no: {SECRET}"}, 400),
        api_answer({"message": SECRET}, 503),
        api_answer({"you": SECRET}),
    ]
    api = PlainApi(answers)
    (key := tmp_path / "key").write_text(SECRET)
    async with serving(api) as port:
        write(tmp_path, port, credential="k", retries=0)
        credential = {
            "name": "k",
            "hosts": [f"http://127.0.0.1:{port}"],
            "type": kind,
            "as": "key",
            "file": str(key),
        }
        with collector() as traces:
            settings = allowing(
                port,
                tmp_path,
                BECKON_ADAPTER_CREDENTIALS=json.dumps([credential]),
                BECKON_LOG_LEVEL="debug",
                OTEL_EXPORTER_OTLP_ENDPOINT=traces.url,
            )
            async with running(settings) as adapter:
                texts = [(await adapter.post(call("api.asked", {}, id=f"call-{n}"))).text for n in range(3)]
            bodies, spans = b"".join(traces.bodies), traces.spans

    assert all(SECRET in one.path + str(one.headers) for one in api.requests)
    assert "[credential]" in texts[0]
    assert json.loads(texts[2]) == {"you": "[credential]"}
    assert SECRET not in adapter.log + "".join(texts)
    assert SECRET.encode() not in bodies
    request = [span.attributes for span in spans if "server.address" in span.attributes]
    assert [one.get("http.response.status_code") for one in request] == [400, 503, 200], spans
    assert {one["server.address"] for one in request} == {"127.0.0.1"}
    assert adapter.process.returncode == 0, adapter.log


async def test_what_a_server_answers_that_speaks_no_mcp_is_in_no_log(tmp_path: Path) -> None:
    async with serving(PlainApi([api_answer({"message": SECRET})])) as port:
        write_event_type(
            tmp_path, "beckon.dev/mcp", {"server": f"http://127.0.0.1:{port}/mcp", "tool": "add"}
        )
        async with running(allowing(port, tmp_path, BECKON_LOG_LEVEL="debug")) as adapter:
            await adapter.post(call("api.asked", {}))

    assert "the MCP server's answer is not MCP" in adapter.log
    assert SECRET not in adapter.log
    assert "Traceback" not in adapter.log


async def test_a_rule_that_comes_later_is_served_from_its_first_call_on(tmp_path: Path) -> None:
    api = PlainApi([api_answer({"n": 1})])
    async with serving(api) as port, running(allowing(port, tmp_path)) as adapter:
        before = await adapter.post(call("api.asked", {}))
        write(tmp_path, port)
        after = await adapter.post(call("api.asked", {}))

    assert before.status_code == 204
    assert after.json() == {"n": 1}


def write_service(folder: Path, **status: object) -> None:
    """Write a Service `shop` as the local platform does, with a status."""
    document = {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": {"name": "shop"},
        "status": status,
    }
    (folder / "shop.yaml").write_text(yaml.safe_dump(document))


async def test_a_call_to_an_api_that_starts_is_to_be_delivered_again(tmp_path: Path) -> None:
    rule = {"url": "http://shop.default.svc.cluster.local/ask"}
    write_event_type(tmp_path, "beckon.dev/http", rule)
    write_service(tmp_path)
    api = PlainApi([api_answer({"n": 1})])
    async with serving(api) as port, running({"BECKON_MANIFESTS": str(tmp_path)}) as adapter:
        starting = await adapter.post(call("api.asked", {}))
        write_service(tmp_path, address={"url": f"http://127.0.0.1:{port}"})

        async def answered() -> bool:
            return (await adapter.post(call("api.asked", {}))).text == '{"n":1}'

        await eventually(answered)

    assert starting.status_code == 503
    assert "shop.default.svc.cluster.local:80: its Service has no address here" in starting.text


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("BECKON_ADAPTER_ALLOWED_HOSTS", "*", "'*' is no host"),
        (
            "BECKON_ADAPTER_ALLOWED_HOSTS",
            "[{host: a.example, privat: true}]",
            "Extra inputs are not permitted",
        ),
        ("BECKON_ADAPTER_ALLOWED_HOSTS", "[", "nor a list in YAML"),
        ("BECKON_ADAPTER_CREDENTIALS", "[{name: a, hosts: [], file: /k}]", "at least 1 item"),
        ("KUBECONFIG", "/no/such/file", "no access to an API server"),
    ],
)
async def test_a_setting_that_makes_no_sense_is_one_line(name: str, value: str, said: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "beckon_adapter"),
        env=clean_environment({"PORT": "0", "HOME": "/nonexistent", name: value}),
        cwd=ROOT,
        stderr=asyncio.subprocess.PIPE,
    )
    _, text = await asyncio.wait_for(process.communicate(), 30)

    last = text.decode().splitlines()[-1]
    assert process.returncode == 2
    assert said in last
    assert last.startswith("beckon_adapter: ")
    assert "Traceback" not in text.decode()


async def test_a_proxy_of_the_environment_has_to_be_left_alone(tmp_path: Path) -> None:
    async with running(
        {"BECKON_MANIFESTS": str(tmp_path), "HTTPS_PROXY": "http://proxy.example:3128"}
    ) as adapter:
        pass

    assert "the proxy of the environment is not used" in adapter.log
