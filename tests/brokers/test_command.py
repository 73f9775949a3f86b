"""`beckon probe broker` as a person or a program runs it."""

import asyncio
import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import aiohttp
import pytest

from beckon_cli.probe.embedded import embedded_broker
from beckon_cli.probe.report import parse_report
from beckon_cli.probe.subscriptions import FolderSubscriptions
from beckon_cli.probe.suite import BrokerUnderTest, new_run
from beckon_contract.cloudevents.events import CloudEvent, to_binary
from tests.brokers.brokers import embedded
from tests.cli.run_beckon import beckon

_SHORT = ("--wait", "4", "--slow", "1", "--calls", "2", "--retry", "0")


def followed_folder(broker: BrokerUnderTest) -> Path:
    """Return the folder that a Broker follows."""
    assert isinstance(broker.subscriptions, FolderSubscriptions)
    return broker.subscriptions.folder


async def start_probe(broker: BrokerUnderTest, *words: str) -> asyncio.subprocess.Process:
    """Start the command on a running Broker; return after its first calls."""
    given = ("probe", "broker", broker.url, "--manifests", str(followed_folder(broker)), *words)
    probing = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "beckon_cli",
        *given,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert probing.stderr
    while b"one after the other" not in (line := await probing.stderr.readline()):
        assert line, "the probe has ended"
    return probing


async def send_replies(broker: BrokerUnderTest, statuses: Counter[int]) -> None:
    """Send replies to calls of others, as in a Broker in use, until cancelled; count the answers."""
    reply = CloudEvent("1", "/tool", "weather.answer", extensions={"replyid": "of-another-call"})
    headers, body = to_binary(reply)
    async with aiohttp.ClientSession() as session:
        while True:
            async with session.post(broker.url, data=body, headers=dict(headers)) as answer:
                statuses[answer.status] += 1
            await asyncio.sleep(0.05)


def test_people_get_a_line_for_each_case_and_progress_beside_it(tmp_path: Path) -> None:
    async def run() -> subprocess.CompletedProcess[str]:
        async with embedded(tmp_path) as broker:
            given = ("probe", "broker", broker.url, "--manifests", str(followed_folder(broker)), *_SHORT)
            others = asyncio.create_task(send_replies(broker, statuses))
            ended = await asyncio.to_thread(beckon, *given, seconds=120)
            others.cancel()
            return ended

    statuses = Counter[int]()
    ended = asyncio.run(run())

    assert ended.returncode == 0, ended.stderr
    assert statuses[202] > 10  # before the probe there is no Broker
    assert "CESQL EXISTS replyid OR … passes replies alone" in ended.stdout
    assert ended.stdout.startswith("embedded broker at http://127.0.0.1:")
    assert "good    calls one after the other: 2 of 2 answered" in ended.stdout
    assert "good    the tool answers 400: 502 undeliverable with the reason, " in ended.stdout
    assert ended.stdout.rstrip().endswith("0 bad")
    assert "good    calls one after the other" in ended.stderr
    assert "killed" not in ended.stdout  # nothing was named that restarts it


def test_programs_get_a_document_and_status_1_where_calls_fail(tmp_path: Path) -> None:
    async def run() -> tuple[int | None, bytes]:
        async with embedded_broker() as process:
            subscriptions = FolderSubscriptions(process.folder, process.url, new_run())
            broker = BrokerUnderTest(process.url, "", subscriptions)
            probing = await start_probe(broker, *_SHORT, "--json", "--label", "killed")
            await process.kill()
            output, _ = await probing.communicate()
            return probing.returncode, output

    status, output = asyncio.run(run())
    report = parse_report(json.loads(output))
    echo = report.row("echo")
    failed = [row for row in report.rows if row.verdict == "bad"]

    assert status == 1
    assert report.label == "killed"
    assert echo is not None
    assert (echo.verdict, echo.runs) == ("good", 1)
    assert failed, report.rows  # on a busy machine some cases end before the kill
    assert all(row.runs in (None, 0, 1) for row in failed)  # one call may have reached the tool by then


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "'nowhere' is no URL of a Broker; write for instance http://127.0.0.1:8081/"),
        (["http://127.0.0.1:9/default/default"], "no embedded broker answers at http://127.0.0.1:9/status"),
        (["--json", "--markdown"], "--json and --markdown are two formats; choose one"),
        (["--wait", "0"], "--wait is too small"),
        (["http://127.0.0.1:9/a/b", "--manifests", "/no/folder"], "there is no folder /no/folder"),
        (["--manifests", "."], "--manifests is for the URL of an embedded broker"),
        (["--namespace", "shop"], "no access to an API server"),
    ],
)
def test_what_cannot_be_tried_is_one_line_and_status_2(words: list[str], message: str) -> None:
    ended = beckon("probe", "broker", *words, settings={"KUBECONFIG": "/no/kubeconfig"})

    assert ended.returncode == 2
    assert ended.stderr.startswith(f"beckon: {message}")
    assert ended.stderr.count("\n") == 1
    assert ended.stdout == ""


def test_a_folder_that_the_broker_does_not_follow_is_named(tmp_path: Path) -> None:
    async def run() -> subprocess.CompletedProcess[str]:
        async with embedded(tmp_path) as broker:
            given = ("probe", "broker", broker.url, "--manifests", str(tmp_path), "--wait", "1")
            return await asyncio.to_thread(beckon, *given)

    ended = asyncio.run(run())

    assert ended.returncode == 2
    assert "Name its folder with --manifests" in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_stopped_probe_removes_its_triggers(tmp_path: Path) -> None:
    async def run() -> tuple[int | None, str, list[str]]:
        async with embedded(tmp_path) as broker:
            probing = await start_probe(broker)
            probing.send_signal(signal.SIGTERM)
            _, errors = await probing.communicate()
            left = [path.name for path in followed_folder(broker).iterdir()]
            return probing.returncode, errors.decode(), left

    status, errors, left = asyncio.run(run())

    assert status == 130
    assert "Traceback" not in errors
    assert left == []


def test_the_help_teaches() -> None:
    ended = beckon("probe", "broker", "--help")

    assert ended.returncode == 0
    for word in (
        "http://127.0.0.1:8081/default/default",
        "--namespace",
        "--restart",
        "--markdown",
        "good, limited",
    ):
        assert word in ended.stdout
