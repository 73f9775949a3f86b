"""The catalogue for people and programs: `GET /tools`, and a call by hand, `POST /tools/{name}`."""

import math
import secrets
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Body

from beckon_agent.calls import prepare
from beckon_agent.faces.problems import ProblemError
from beckon_agent.model.types import ToolCall
from beckon_agent.service import Service
from beckon_contract.problem import Problem
from beckon_contract.tools import Tool, declare

_STATUS = {"unknown_tool": 404, "invalid_arguments": 422, "denied": 403, "timeout": 504}
_SOURCE = "/beckon/agents/-/by-hand"


def router(service: Service) -> APIRouter:
    """Return the routes of this face."""
    routes = APIRouter()

    @routes.get("/tools")
    async def list_tools() -> dict[str, object]:
        """List the tools as a model sees them, and what was refused or skipped, with the reason."""
        catalogue = service.catalogue.current
        return {
            "tools": [_document(tool) for tool in catalogue.tools.values()],
            "refused": [asdict(refusal) for refusal in catalogue.refusals],
            "skipped": [asdict(skipped) for skipped in catalogue.skipped],
        }

    @routes.post("/tools/{name}")
    async def call_tool(name: str, arguments: Annotated[dict[str, Any], Body()]) -> dict[str, object]:
        """Call a tool through the Broker, without a model; its failure is a problem document."""
        asked = ToolCall(id="by-hand", name=name, arguments=orjson.dumps(arguments).decode())
        call = prepare([asked], service.catalogue.current.tools)[0]
        event_id = f"by-hand.{secrets.token_hex(8)}"
        finished = await service.caller.make(call, event_id=event_id, source=_SOURCE, remaining=math.inf)
        service.metrics.call(finished)
        if finished.failed:
            raise _problem(finished.result)
        return {"result": finished.result, "seconds": round(finished.seconds, 3)}

    return routes


def _document(tool: Tool) -> dict[str, object]:
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "declaration": declare(tool),
        "event_type": tool.event_type,
        "namespace": tool.namespace,
        "type": tool.type,
        "broker": tool.broker,
        "triggers": list(tool.routes),
        "parameters_from": tool.parameters_from,
        "requires_approval": tool.requires_approval,
        "read_only": tool.read_only,
        "idempotent": tool.idempotent,
    }


def _problem(result: object) -> ProblemError:
    error: Mapping[str, Any] = {}
    if isinstance(result, Mapping) and isinstance(result.get("error"), Mapping):
        error = result["error"]
    reason = str(error.get("reason", "tool_failed"))
    details = {key: value for key, value in error.items() if key != "message"}
    title = reason.replace("_", " ").capitalize()
    detail = str(error.get("message", "the tool failed"))
    return ProblemError(Problem(_STATUS.get(reason, 502), reason.replace("_", "-"), title, detail, details))
