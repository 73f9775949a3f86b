"""Conditions in the status of a resource.

Shapes as in Kubernetes' API conventions, "Typical status properties".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

READY = "Ready"

Status = Literal["True", "False", "Unknown"]


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition, without its time: `reason` is one CamelCase word."""

    type: str
    status: Status
    reason: str
    message: str = ""

    @property
    def words(self) -> str:
        """Reason and message in one line."""
        return f"{self.reason} {self.message}".strip()


def condition(status: Mapping[str, Any], name: str) -> Condition | None:
    """Return any resource's status condition by its type, or `None`."""
    conditions = status.get("conditions")
    for found in conditions if isinstance(conditions, list) else ():
        if isinstance(found, Mapping) and found.get("type") == name:
            said = found.get("status")
            return Condition(
                name,
                said if said in ("True", "False") else "Unknown",
                str(found.get("reason") or ""),
                str(found.get("message") or ""),
            )
    return None
