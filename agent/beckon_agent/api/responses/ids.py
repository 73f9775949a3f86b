"""The ids of responses, items and approval requests.

Each contains the id of its run, or of its call's event. A run that waits for approvals is several
responses: each ends with its approval requests, and the one after the answers is the run's next part.
"""

import re
import secrets

_PREFIX = "resp_"
_RESPONSE = re.compile(r"(resp_[0-9a-f]{32})(?:_([2-9]|[1-9][0-9]{1,3}))?")
_ITEM = re.compile(r"(?:msg|rs|mcp|fc)_([0-9a-f]{32})_[0-9]{1,6}")
_APPROVAL = "mcpr_"


def new_run_id() -> str:
    """Return a new run id, also the id of its first part."""
    return f"{_PREFIX}{secrets.token_hex(16)}"


def response_id(run_id: str, part: int) -> str:
    """Return the id of a part of a run, counted from 1."""
    return run_id if part == 1 else f"{run_id}_{part}"


def run_and_part(response: str) -> tuple[str, int] | None:
    """Return the run id and part number of a response id.

    `None` if it is no valid response id.
    """
    found = _RESPONSE.fullmatch(response)
    return (found[1], int(found[2] or 1)) if found else None


def item_id(kind: str, run_id: str, number: int) -> str:
    """Return the id of an item by its number in a run.

    It is the same in every stream of the run.
    """
    return f"{kind}_{run_id.removeprefix(_PREFIX)}_{number}"


def run_of_item(item: str) -> str | None:
    """Return the run id of an output item.

    `None` if the id is no output item's.
    """
    found = _ITEM.fullmatch(item)
    return f"{_PREFIX}{found[1]}" if found else None


def approval_id(event_id: str) -> str:
    """Return the approval request id for a call's event id."""
    return f"{_APPROVAL}{event_id}"


def event_of_approval(approval: str) -> str | None:
    """Return the call's event id for an approval request id.

    `None` if it is no approval request id.
    """
    return approval.removeprefix(_APPROVAL) if approval.startswith(_APPROVAL) else None
