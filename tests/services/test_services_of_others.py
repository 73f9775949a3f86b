"""Each service is called through agent, shim, broker and Trigger, and its answer is the result."""

from collections.abc import Mapping

import httpx
import pytest

from tests.e2e.local_platform import LocalPlatform
from tests.patience import PATIENCE
from tests.services.kinds import KINDS, Kind


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.name) for kind in KINDS])
def test_a_service_that_knows_nothing_of_beckon_is_a_tool(
    addresses: Mapping[str, str], platform: LocalPlatform, kind: Kind
) -> None:
    if kind.service not in addresses:
        pytest.skip(f"{kind.service} is not installed, so there is no service made with it")

    tool = next(each for each in platform.tools() if each["event_type"] == kind.name)
    answer = httpx.post(f"{platform.url}/tools/{tool['name']}", json={"name": "Ada"}, timeout=PATIENCE)

    assert (answer.status_code, answer.json().get("result")) == (200, kind.result), answer.text
