"""Access, ownership and quotas at every protocol, from one table."""

import pkgutil
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import httpx
import pytest
import pytest_asyncio
from fastapi.routing import iter_route_contexts

from beckon_agent import api
from beckon_agent.api.access import OPEN_PATHS
from beckon_agent.api.page import is_page
from beckon_contract.api_keys import new_entry, new_key
from tests.agent.auth.closed_service import ClosedService, bearing, checking, closed_service, terms
from tests.agent.auth.faces import A2A, FACES, NO_FACES, Face
from tests.agent.event_platform import EventPlatform
from tests.agent.scripted_model import asks_for, says
from tests.agent.tools_for_tests import BENCH

pytestmark = pytest.mark.asyncio(loop_scope="module")

ONCE = [{"of": "requests", "per": "agent", "limit": 1, "seconds": 3600}]
AGENTS = {
    "open": terms(),
    "ops": terms(access={"groups": ["ops"]}),
    **{f"once-{name}": terms(quotas=ONCE) for name in FACES},
}
SECRET = "a secret answer"


@dataclass(frozen=True)
class Callers:
    """A service, and the headers of two of its callers."""

    service: ClosedService
    owner: dict[str, str]
    other: dict[str, str]

    async def begin(self, face: Face) -> str:
        """Return the id of the run that the owner began by a face."""
        self.service.model.script[:] = [says(SECRET)]
        answer = await face.begin(self.service.http, "open", self.owner)
        assert answer.status_code == 200, answer.text
        listed = (await self.service.http.get("/runs", headers=self.owner)).json()["data"]
        newest: str = listed[0]["id"]
        return newest


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def callers(
    platform: EventPlatform, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Callers]:
    """A service with two keys, of which one is in the group `ops`."""
    owner, other = new_key(), new_key()
    file = tmp_path_factory.mktemp("access") / "keys.jsonl"
    file.write_text(f"{new_entry(owner, 'owner', ['ops']).line()}\n{new_entry(other, 'other').line()}\n")
    async with (
        aiohttp.ClientSession() as session,
        closed_service(platform, AGENTS, checking(None, file, session)) as service,
    ):
        yield Callers(service, bearing(owner), bearing(other))


async def test_every_package_of_the_api_is_a_face_of_the_table() -> None:
    packages = {module.name for module in pkgutil.iter_modules(api.__path__) if module.ispkg}

    assert packages == FACES.keys() | NO_FACES.keys(), "add the new protocol to tests/agent/auth/faces.py"


def protected_routes(service: ClosedService) -> list[tuple[str, str]]:
    """Return method and path of each route that needs a credential, with `x` for each parameter."""
    found = set()
    for route in iter_route_contexts(service.app.routes):
        path = "/".join(
            "x" if part.startswith("{") else part for part in (route.path_format or "").split("/")
        )
        found |= {(method, path) for method in route.methods or {"GET", "POST"}}
    return sorted((method, path) for method, path in found if not _is_open(method, path))


def _is_open(method: str, path: str) -> bool:
    return path in OPEN_PATHS or is_page({"type": "http", "method": method, "path": path})


async def test_no_route_lets_a_stranger_in(callers: Callers) -> None:
    service = callers.service
    answers = {
        (method, path): (await service.http.request(method, path)).status_code
        for method, path in protected_routes(service)
    }

    assert len(answers) > 40
    assert {route: status for route, status in answers.items() if status != 401} == {}


@pytest.mark.parametrize("name", FACES)
async def test_an_agent_of_others_is_not_there(callers: Callers, name: str) -> None:
    service = callers.service
    service.model.script[:] = [says("hello")]
    sent = len(service.model.requests)

    refused = await FACES[name].begin(service.http, "ops", callers.other)
    requested_other = len(service.model.requests) - sent
    admitted = await FACES[name].begin(service.http, "ops", callers.owner)

    assert (refused.status_code, requested_other) == (404, 0)
    assert admitted.status_code == 200


@pytest.mark.parametrize("name", [name for name, face in FACES.items() if face.requests_of("r")])
async def test_a_stored_run_is_its_owners_alone(callers: Callers, name: str) -> None:
    http, face = callers.service.http, FACES[name]
    run = await callers.begin(face)
    requests = [*face.requests_of(run), ("GET", f"/runs/{run}", None), ("GET", f"/runs/{run}/events", None)]

    for method, path, body in requests:
        answer = await http.request(method, path, json=body, headers={**callers.other, **A2A})
        assert SECRET not in answer.text, path
        assert is_refused(answer, run), answer.text
    method, path, body = requests[0]
    own = await http.request(method, path, json=body, headers={**callers.owner, **A2A})
    assert (own.status_code, SECRET in own.text) == (200, True)


def is_refused(answer: httpx.Response, run: str) -> bool:
    """Return True for an error, or a list without this run."""
    document: dict[str, Any] = answer.json()
    is_list_of_others = "tasks" in document and run not in answer.text
    return answer.status_code >= 400 or "error" in document or is_list_of_others


@pytest.mark.parametrize("name", FACES)
async def test_a_quota_of_requests_ends_in_the_shape_of_the_face(callers: Callers, name: str) -> None:
    service, face = callers.service, FACES[name]
    service.model.script[:] = [says("hello")]
    sent = len(service.model.requests)

    first = await face.begin(service.http, f"once-{name}", callers.owner)
    second = await face.begin(service.http, f"once-{name}", callers.owner)

    assert first.status_code == 200
    assert not face.refuses_later(first)
    assert face.refuses_later(second), second.text
    assert "the quota of 1 requests in 3600 s" in second.text
    assert len(service.model.requests) - sent <= 1


async def test_a_context_of_another_caller_begins_a_conversation_of_its_own(callers: Callers) -> None:
    http = callers.service.http
    callers.service.model.script[:] = [says(SECRET), says("hello")]
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "go"}]}
    path = "/agents/open/a2a/message:send"
    made = await http.post(path, json={"message": message}, headers={**callers.owner, **A2A})
    context = made.json()["task"]["contextId"]

    taken = {"message": {**message, "contextId": context}}
    answer = await http.post(path, json=taken, headers={**callers.other, **A2A})

    assert answer.json()["task"]["contextId"] == context
    assert SECRET not in str(callers.service.model.requests[-1].body)


async def test_an_interrupt_is_answered_by_its_owner_alone(callers: Callers) -> None:
    http, thread = callers.service.http, {"threadId": "t", "runId": "r", "messages": []}
    callers.service.model.script[:] = [asks_for(("test_danger", {})), says(SECRET)]
    question = [{"id": "m", "role": "user", "content": "go"}]
    BENCH.calls.clear()
    sent = await http.post("/agents/open/ag-ui", json={**thread, "messages": question}, headers=callers.owner)
    (interrupt,) = re.findall(r"mcpr_[^\"]+", sent.text)
    answer = {"interruptId": interrupt, "status": "resolved", "payload": {"approved": True}}

    refused = await http.post(
        "/agents/open/ag-ui", json={**thread, "resume": [answer]}, headers=callers.other
    )
    called_by_other = list(BENCH.calls)
    admitted = await http.post(
        "/agents/open/ag-ui", json={**thread, "resume": [answer]}, headers=callers.owner
    )

    assert "interrupt_not_found" in refused.text
    assert called_by_other == []
    assert (SECRET in admitted.text, BENCH.calls) == (True, ["danger"])
