"""The ids of responses and items, made so that each says what it belongs to.

A run that waits for approvals is told as several responses: each ends with its questions, and the one
after the answers is the next part of the same run.
"""

import re
import secrets

_PREFIX = "resp_"
_RESPONSE = re.compile(r"(resp_[0-9a-f]{32})(?:_([2-9]|[1-9][0-9]{1,3}))?")
_ITEM = re.compile(r"(?:msg|rs|mcp|fc)_([0-9a-f]{32})_[0-9]{1,6}")
_APPROVAL = "mcpr_"


def new_run_id() -> str:
    """Return the id of a run to be; its first part has the same."""
    return f"{_PREFIX}{secrets.token_hex(16)}"


def response_id(run_id: str, part: int) -> str:
    """Return the id of a part of a run, counted from 1."""
    return run_id if part == 1 else f"{run_id}_{part}"


def run_and_part(response: str) -> tuple[str, int] | None:
    """Return the run that a response id means and the part of it, `None` where it can mean none."""
    found = _RESPONSE.fullmatch(response)
    return (found[1], int(found[2] or 1)) if found else None


def item_id(kind: str, run_id: str, number: int) -> str:
    """Return the id of the item of this number in a run: the same whenever the run is told."""
    return f"{kind}_{run_id.removeprefix(_PREFIX)}_{number}"


def run_of_item(item: str) -> str | None:
    """Return the run whose output an item is, `None` where the id is no output item's."""
    found = _ITEM.fullmatch(item)
    return f"{_PREFIX}{found[1]}" if found else None


def approval_id(event_id: str) -> str:
    """Return the id of the question whether a call may be made."""
    return f"{_APPROVAL}{event_id}"


def event_of_approval(approval: str) -> str | None:
    """Return the event id of the call that a question is about."""
    return approval.removeprefix(_APPROVAL) if approval.startswith(_APPROVAL) else None
