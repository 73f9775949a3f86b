"""The metrics name agents and tools: only those read them whom the operator lets."""

import signal
from pathlib import Path

import httpx
import pytest
from pydantic import ValidationError

from beckon_agent.core.context import ANONYMOUS, UNAUTHENTICATED, Principal
from beckon_agent.settings import Settings
from beckon_contract.api_keys import new_entry, new_key
from tests.agent.agent_process import serving
from tests.e2e.local_platform import port_range
from tests.patience import PATIENCE

ANN, BOB = (Principal(f"key:{name}", frozenset(), "key") for name in ("ann", "bob"))


@pytest.mark.parametrize(
    ("settings", "readers"),
    [
        ({}, {ANONYMOUS}),
        ({"anonymous": True}, set()),
        ({"keys_file": "keys.jsonl", "anonymous": False}, set()),
        ({"metrics_users": "key:ann, oidc:x"}, {ANN, ANONYMOUS}),
        ({"metrics_users": "*", "anonymous": True}, {ANN, BOB, ANONYMOUS}),
    ],
)
def test_at_the_port_of_the_agent_those_read_them_whom_a_setting_names(
    settings: dict[str, object], readers: set[Principal]
) -> None:
    may_read = Settings.model_validate(settings).may_read_metrics()

    assert may_read is not None
    assert {who for who in (ANN, BOB, ANONYMOUS, UNAUTHENTICATED) if may_read(who)} == readers


async def test_a_caller_with_a_key_that_is_not_named_is_refused_and_reads_the_cure(tmp_path: Path) -> None:
    keys = {name: new_key() for name in ("prometheus", "ann")}
    file = tmp_path / "keys.jsonl"
    file.write_text("".join(f"{new_entry(key, name).line()}\n" for name, key in keys.items()))
    settings = {"BECKON_KEYS_FILE": str(file), "BECKON_METRICS_USERS": "key:prometheus"}
    async with serving(tmp_path, **settings) as agent:
        found = {
            name: await agent.http.get("/metrics", headers={"authorization": f"Bearer {key}"})
            for name, key in keys.items()
        }
        stranger = await agent.http.get("/metrics")

    assert found["prometheus"].status_code == 200
    assert "beckon_agent_running" in found["prometheus"].text
    assert found["ann"].status_code == 403
    assert "BECKON_METRICS_USERS" in found["ann"].json()["detail"]
    assert stranger.status_code == 401


async def test_with_a_port_of_their_own_they_are_there_and_nowhere_else(tmp_path: Path) -> None:
    port = port_range()
    async with (
        serving(tmp_path, BECKON_METRICS_PORT=str(port)) as agent,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as scraper,
    ):
        found = await scraper.get("/metrics")
        others = [(await scraper.get(path)).status_code for path in ("/tools", "/v1/models", "/openapi.json")]
        at_the_agent = await agent.http.get("/metrics")

        assert found.status_code == 200
        assert "beckon_agent_running" in found.text
        assert others == [404, 404, 404]
        assert at_the_agent.status_code == 404
        agent.process.send_signal(signal.SIGTERM)
        assert (await agent.ended())[0] == 0


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"metrics_users": "ann"}, "key:NAME"),
        ({"port": 8080, "metrics_port": 8080}, "BECKON_METRICS_PORT"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(settings: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Settings.model_validate(settings)
