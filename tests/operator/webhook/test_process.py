"""The webhook as it really runs: a process that gets settings and signals."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import aiohttp
import pytest

from beckon_operator.webhook.__main__ import main
from beckon_operator.webhook.settings import WebhookSettings
from tests.patience import PATIENCE

# Nothing listens on port 1.
NOWHERE = """
apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: none, user: {token: t0p-secret}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
current-context: none
"""


@pytest.fixture
def nowhere(tmp_path: Path) -> str:
    path = tmp_path / "kubeconfig"
    path.write_text(NOWHERE)
    return str(path)


@asynccontextmanager
async def started(kubeconfig: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, list[str]]]:
    """Start a webhook on a free port, and collect what it logs."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "beckon_operator.webhook",
        env={**os.environ, "KUBECONFIG": kubeconfig, "BECKON_WEBHOOK_HEALTH_PORT": "0"},
        stderr=asyncio.subprocess.PIPE,
    )
    lines: list[str] = []
    try:
        yield child, lines
    finally:
        if child.returncode is None:
            child.kill()
        await child.communicate()


async def line_with(child: asyncio.subprocess.Process, lines: list[str], words: str) -> str:
    assert child.stderr is not None
    async with asyncio.timeout(PATIENCE):
        while words not in (line := (await child.stderr.readline()).decode()):
            lines.append(line)
            assert line, f"it ended without {words!r}: {lines}"
    lines.append(line)
    return line


async def test_without_the_api_server_it_lives_says_why_it_is_not_ready_and_stops_at_once(
    nowhere: str,
) -> None:
    async with started(nowhere) as (child, lines), aiohttp.ClientSession() as client:
        url = re.findall(r"http://[\d.]+:\d+", await line_with(child, lines, "health on"))[0]
        await line_with(child, lines, "cannot be looked after")
        async with client.get(url + "/healthz") as answer:
            assert answer.status == 200
        async with client.get(url + "/readyz") as answer:
            assert answer.status == 503
            assert "cannot be looked after" in (await answer.json())["detail"]
        child.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(child.wait(), PATIENCE) == 0
    assert "t0p-secret" not in "".join(lines)


def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **settings: str) -> str:
    """Start with bad settings; return the one line that is said, with exit status 2."""
    aliases = {name: field.validation_alias for name, field in WebhookSettings.model_fields.items()}
    for name, value in settings.items():
        variable = name if name.isupper() else str(aliases[name] or f"BECKON_WEBHOOK_{name.upper()}")
        monkeypatch.setenv(variable, value)
    assert main() == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    return lines[0]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("port", "99999", "BECKON_PORT: "),
        ("namespace", "Team A", "BECKON_POD_NAMESPACE: "),
        ("poll_seconds", "0", "BECKON_WEBHOOK_POLL_SECONDS: "),
        ("certificate_days", "soon", "BECKON_WEBHOOK_CERTIFICATE_DAYS: "),
        ("certificate_days", "3000", "at most a third"),
        ("certificate_days", "0.0001", "nine times poll_seconds"),
        ("extra_names", "a.b,-x", "'-x' is neither"),
        ("BECKON_LOG_LEVEL", "loud", "BECKON_LOG_LEVEL: "),
        ("KUBECONFIG", "/nowhere/kubeconfig", "no access to an API server"),
    ],
)
def test_a_wrong_setting_is_reported_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str, said: str
) -> None:
    assert said in refused(monkeypatch, capsys, **{name: value})


def test_the_certificate_is_for_the_service_and_for_what_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BECKON_POD_NAMESPACE", "tools")
    monkeypatch.setenv("BECKON_WEBHOOK_EXTRA_NAMES", "127.0.0.1, hook.example.com")

    assert WebhookSettings().rotation_policy().names == {
        "beckon-webhook.tools.svc",
        "beckon-webhook.tools.svc.cluster.local",
        "127.0.0.1",
        "hook.example.com",
    }


def test_a_new_authority_settles_for_a_minute_or_for_a_ninth_of_a_short_life() -> None:
    short = WebhookSettings.model_validate({"certificate_days": 0.002, "authority_days": 0.006})

    assert WebhookSettings().rotation_policy().settle == timedelta(minutes=1)
    assert short.rotation_policy().settle == timedelta(days=0.006) / 9
