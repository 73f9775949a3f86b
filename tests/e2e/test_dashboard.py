"""The dashboard in a real Prometheus that scrapes a real platform: each of its queries gives something."""

import json
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from tests.agent.scripted_model import asks_for, says
from tests.charts.test_dashboards import ALL, of_the_agent, of_the_broker, of_the_operator, queries
from tests.e2e.conftest import Start
from tests.e2e.local_platform import LocalPlatform, port_range
from tests.e2e.manifests import tool_manifests
from tests.e2e.model_thread import ModelThread, model_thread
from tests.patience import PATIENCE, wait_until
from tests.prometheus import program, prometheus

KIND = {"type": "object", "properties": {"kind": {"type": "string"}}, "required": ["kind"]}
SECONDS = {"type": "object", "properties": {"seconds": {"type": "number"}}, "required": ["seconds"]}
ONCE_AGAIN = {"retry": 1, "backoffPolicy": "linear", "backoffDelay": "PT0.05S"}
FILLED = {"$namespace": ".*", "$agent": ".*", "$__rate_interval": "1m", "$__range": "5m"}
OUTCOMES = {"answered", "invalid_arguments", "timeout", "tool_failed", "undeliverable", "unknown_tool"}


@contextmanager
def exposition(text: str) -> Iterator[str]:
    """Serve a text as metrics, for what runs in clusters only; a post gets 410."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text.encode())

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_error(410)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


@pytest.fixture(scope="module")
def model() -> Iterator[ModelThread]:
    with model_thread() as running:
        yield running


@pytest.fixture(scope="module")
def platform(
    start_platform: Start, model: ModelThread, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalPlatform]:
    folder = tmp_path_factory.mktemp("manifests")
    for name, parameters in (("fail", KIND), ("sleep", SECONDS)):
        command = f"python -m beckon_tools serve tests.e2e.tools:{name}"
        text = tool_manifests(f"test-{name}", "A tool.", parameters, command=command)
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    lost = tool_manifests(
        "test-lost",
        "No process listens there, and the Trigger wants no dead letters.",
        KIND,
        url="http://127.0.0.1:9/",
        annotations={"beckon.dev/timeout": "1s"},
        delivery=ONCE_AGAIN,
    )
    (folder / "lost.yaml").write_text(lost, encoding="utf-8")
    with exposition("") as address:
        gone = tool_manifests("test-gone", "It is gone.", KIND, url=f"http://{address}/")
        (folder / "gone.yaml").write_text(gone, encoding="utf-8")
        yield start_platform(folder, OPENAI_BASE_URL=model.base_url, BECKON_MODEL="scripted")


def addresses(platform: LocalPlatform) -> dict[str, str]:
    """Where the processes of a platform serve their metrics, by what it has printed."""
    shown = dict(re.findall(r"^(agent|broker|shim) +http://([0-9.:]+)", platform.text(), re.MULTILINE))
    tools = re.findall(r"(test-(?:fail|sleep)) :(\d+)", platform.text())
    return {**shown, **{name: f"127.0.0.1:{port}" for name, port in tools}}


def work(platform: LocalPlatform, model: ModelThread) -> None:
    """Let there be some of everything: an answer, each kind of failure, a request that leads nowhere."""
    calls: list[tuple[str, dict[str, object]]] = [
        ("test_sleep", {"seconds": 0.01}),
        ("test_sleep", {"wrong": 1}),
        ("test_fail", {"kind": "refuse"}),
        ("test_gone", {"kind": "a"}),
        ("test_lost", {"kind": "a"}),
        ("made_up", {}),
    ]
    model.play(asks_for(*calls), says("done"))
    request = {"model": "beckon", "messages": [{"role": "user", "content": "go"}]}
    answer = httpx.post(f"{platform.url}/v1/chat/completions", json=request, timeout=PATIENCE)
    assert answer.status_code == 200
    assert httpx.get(f"{platform.url}/nowhere", timeout=PATIENCE).status_code == 404


def expressions() -> set[str]:
    """The queries of all panels, as Grafana sends them with everything chosen."""
    dashboards = [json.loads(path.read_text(encoding="utf-8")) for path in ALL]
    written = {query for one in dashboards for query in queries(one) if not query.startswith("label_values")}
    for variable, value in FILLED.items():
        written = {query.replace(variable, value) for query in written}
    assert not [query for query in written if "$" in query]
    return written


def test_every_query_of_the_dashboard_gives_something(
    platform: LocalPlatform, model: ModelThread, tmp_path: Path
) -> None:
    with (
        exposition(of_the_operator()) as operator,
        exposition(of_the_agent()) as another,
        exposition(of_the_broker()) as ingress,
        prometheus(
            tmp_path,
            port_range(),
            {**addresses(platform), "operator": operator, "agent-2": another, "ingress": ingress},
        ) as running,
    ):

        def empty() -> list[str]:
            return [one for one in sent if not running.ask(one)]

        sent = expressions()
        wait_until(running.is_up, 30)
        rounds = time.monotonic() + 60
        while empty() and time.monotonic() < rounds:
            work(platform, model)

        assert empty() == []
        assert running.values("namespace", "beckon_agent_tools") == {"team"}
        assert running.values("agent", "beckon_agent_runs_total") >= {"beckon"}
        calls = "sum by (outcome) (rate(beckon_agent_tool_calls_total{agent='beckon'}[1m])) > 0"
        wait_until(lambda: {one["metric"]["outcome"] for one in running.ask(calls)} == OUTCOMES, 30)


def test_prometheus_finds_nothing_to_object_to_in_what_is_exposed(platform: LocalPlatform) -> None:
    for name, address in addresses(platform).items():
        text = httpx.get(f"http://{address}/metrics", timeout=PATIENCE).content
        command = [program("promtool"), "check", "metrics"]
        done = subprocess.run(command, input=text, capture_output=True, timeout=30, check=False)
        assert (name, done.returncode, done.stderr.decode()) == (name, 0, "")
