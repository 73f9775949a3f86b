"""What `spec.schemaData` held before Knative erased it, as long as nothing else has changed."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from beckon_contract.places import LAST_APPLIED, PARAMETERS, SCHEMA_DATA
from beckon_operator.observed import Observed

_PLACE = "spec.schemaData"
_DURABLE = (PARAMETERS, SCHEMA_DATA, LAST_APPLIED)


class ErasedSchemas:
    """The texts that were seen, by uid and generation of their EventType.

    Knative erases schemaData through a status update, which leaves the generation as it is. What
    was seen therefore holds until the generation changes. A Tool that was made of it remembers it
    over a restart.
    """

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, str]] = {}

    def recall(self, observed: Observed) -> Observed:
        """Return an EventType with the schemaData that its generation had; remember what it has.

        One that holds its parameters in a place that lasts is left as it is.
        """
        resource = observed.resource
        text = resource.spec.get("schemaData")
        if isinstance(text, str) and text.strip():
            self._seen[resource.uid] = (resource.generation, text)
            return observed
        if any(resource.annotations.get(name) for name in _DURABLE):
            return observed
        generation, seen = self._seen.get(resource.uid, (-1, ""))
        if generation != resource.generation:
            self._seen.pop(resource.uid, None)
            return observed
        whole = replace(resource, spec={**resource.spec, "schemaData": seen})
        return replace(observed, resource=whole, remembered=True)

    def learn(self, tool: Mapping[str, Any]) -> None:
        """Remember the parameters of a Tool that was made of a schemaData which nobody else has kept."""
        spec, origin = tool.get("spec") or {}, (tool.get("status") or {}).get("eventType") or {}
        uid, generation = origin.get("uid"), origin.get("generation")
        if spec.get("parametersFrom") == _PLACE and uid and isinstance(generation, int):
            self._seen.setdefault(uid, (generation, json.dumps(spec.get("parameters"))))

    def forget(self, uid: str) -> None:
        """Forget an EventType that is gone."""
        self._seen.pop(uid, None)
