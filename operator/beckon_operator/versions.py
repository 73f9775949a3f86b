"""Which of the watched kinds are served, and EventTypes in which version."""

from dataclasses import replace

from beckon_operator.api import Api, Refused
from beckon_operator.kinds import (
    BROKERS,
    EVENT_TYPE_VERSIONS,
    EVENT_TYPES,
    SERVICES,
    TOOLS,
    TRIGGERS,
    Kind,
)


async def served_kinds(api: Api) -> tuple[Kind, ...]:
    """Return the kinds that the API server serves, EventTypes in the best version only.

    Tools come first: what they hold helps to read EventTypes. Raises what a request of `Api` raises.
    """
    versions = [replace(EVENT_TYPES, version=version) for version in EVENT_TYPE_VERSIONS]
    event_types = [kind for kind in versions if await _serves(api, kind)]
    others = [kind for kind in (TOOLS, BROKERS, SERVICES, TRIGGERS) if await _serves(api, kind)]
    return (*others, *event_types[:1])


async def _serves(api: Api, kind: Kind) -> bool:
    try:
        found = await api.get(f"/apis/{kind.api_version}")
    except Refused as error:
        if error.status == 404:
            return False
        raise
    return any(one.get("name") == kind.plural for one in found.get("resources") or ())
