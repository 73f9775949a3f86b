"""In which version EventTypes are watched."""

from dataclasses import replace

from beckon_operator.api import Api, Refused
from beckon_operator.kinds import EVENT_TYPE_VERSIONS, EVENT_TYPES, Kind


async def served_event_types(api: Api) -> Kind:
    """Return the kind EventType in the best version that is served; raise what a request of `Api` raises.

    Where Knative is not installed yet, the version that it will most likely serve.
    """
    for version in EVENT_TYPE_VERSIONS:
        try:
            found = await api.get(f"/apis/{EVENT_TYPES.group}/{version}")
        except Refused as error:
            if error.status == 404:
                continue
            raise
        if any(one.get("name") == EVENT_TYPES.plural for one in found.get("resources") or ()):
            return replace(EVENT_TYPES, version=version)
    return EVENT_TYPES
