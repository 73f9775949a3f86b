"""A service with many agents, as its clients use it; its model server answers with what it was sent."""

import json
from dataclasses import dataclass
from typing import Any

import httpx

from tests.agent.running_agent import user
from tests.patience import eventually


@dataclass(slots=True)
class ManyAgents:
    """The agents behind one address."""

    http: httpx.AsyncClient

    async def post(self, model: str = "beckon", **body: Any) -> httpx.Response:
        """Ask an agent a question."""
        request = {"model": model, "messages": [user("go")], **body}
        return await self.http.post("/v1/chat/completions", json=request)

    async def ask(self, model: str = "beckon") -> dict[str, Any]:
        """Return what the model server says it was sent."""
        response = await self.post(model)
        assert response.status_code == 200, response.text
        shown: dict[str, Any] = json.loads(response.json()["choices"][0]["message"]["content"])
        return shown

    async def error(self, model: str) -> tuple[int, str, str]:
        """Return status, code and message of an agent that takes no requests."""
        response = await self.post(model)
        error = response.json()["error"]
        return response.status_code, error["code"], error["message"]

    async def serves(self, name: str, /, **shown: Any) -> None:
        """Wait until an agent answers, and its model server was sent all this."""

        async def as_wanted() -> bool:
            response = await self.post(name)
            if response.status_code != 200:
                return False
            answer = json.loads(response.json()["choices"][0]["message"]["content"])
            return all(answer[name] == value for name, value in shown.items())

        await eventually(as_wanted)

    async def refuses(self, model: str, status: int, said: str) -> None:
        """Wait until an agent takes no requests, with these words."""

        async def as_wanted() -> bool:
            response = await self.post(model)
            return response.status_code == status and said in response.text

        await eventually(as_wanted)
