"""Who may call on a laptop: the agent, and no other program of the machine."""

import re

import httpx

from tests.e2e.local_platform import LocalPlatform
from tests.patience import PATIENCE

CALL = {
    "ce-specversion": "1.0",
    "ce-id": "1",
    "ce-source": "/page",
    "ce-type": "calculator",
    "content-type": "application/json",
}


def test_the_shim_takes_no_call_but_the_agents(platform: LocalPlatform) -> None:
    found = re.search(r"^shim\s+(http://\S+)", platform.text(), re.MULTILINE)
    assert found is not None
    arguments = {"expression": "17% * 2340"}

    with httpx.Client(timeout=PATIENCE) as http:
        refused = http.post(f"{found[1]}/default/default", json=arguments, headers=CALL)
        called = http.post(f"{platform.url}/tools/calculator", json=arguments)

    assert refused.status_code == 401
    assert refused.headers["content-type"] == "application/problem+json"
    assert "no credential" in refused.json()["detail"]
    assert called.status_code == 200, called.text
