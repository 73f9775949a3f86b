"""The tool `current.time`: what time it is, in a time zone or a city that names one."""

import difflib
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from types import MappingProxyType
from typing import Annotated
from zoneinfo import ZoneInfo, available_timezones

from pydantic import Field

from beckon_tools.declaration import AnyTool, Hints, tool
from beckon_tools.errors import ToolError
from beckon_tools.settings import Settings

_OFFSET = re.compile(r"(?:UTC|GMT)?\s*([+-])(\d{1,2})(?::?([0-5]\d))?\Z", re.IGNORECASE)


@tool(type="current.time", hints=Hints(read_only=True, idempotent=True))
async def current_time(
    timezone: Annotated[
        str,
        Field(
            description='An IANA time zone ("Europe/Berlin"), a city that names one ("Tokyo"), or "UTC+2"',
            max_length=100,
        ),
    ] = "UTC",
) -> dict[str, str]:
    """Tell the current date, time and weekday in a time zone or a city."""
    zone = find_zone(timezone, datetime.now(UTC))
    return describe_moment(datetime.now(UTC), zone)


def describe_moment(moment: datetime, zone: tzinfo) -> dict[str, str]:
    """Return a moment in a zone, as a tool's result."""
    local = moment.astimezone(zone)
    return {
        "timezone": str(zone),
        "time": local.isoformat(timespec="seconds"),
        "weekday": f"{local:%A}",
        "abbreviation": local.tzname() or "",
    }


def find_zone(name: str, moment: datetime) -> tzinfo:
    """Return the zone of this name; raise `ToolError` where none, or several that differ, have it."""
    wanted = " ".join(name.replace("_", " ").split()).casefold()
    offset = _OFFSET.match(wanted)
    if offset:
        return _fixed_zone(offset[1], int(offset[2]), int(offset[3] or 0))
    keys = _zone_names().get(wanted) or _zone_names().get(wanted.split(",")[0].strip())
    if not keys:
        near = difflib.get_close_matches(wanted, _zone_names(), n=3, cutoff=0.75)
        hint = f"; near it are {', '.join(_zone_names()[match][0] for match in near)}" if near else ""
        raise ToolError(
            f"no time zone or zone city is called {name!r}{hint}; give an IANA name, as Europe/Berlin"
        )
    zones = [ZoneInfo(key) for key in keys]
    if len({moment.astimezone(zone).utcoffset() for zone in zones}) > 1:
        raise ToolError(f"{name!r} may mean {' or '.join(keys)}; give one of these")
    return zones[0]


@cache
def _zone_names() -> Mapping[str, Sequence[str]]:
    """Return the keys of the time zones by lower-case name, by city and by "city, region"."""
    zones: dict[str, list[str]] = {}
    for key in sorted(available_timezones(), key=lambda key: (len(key), key)):
        city = key.rpartition("/")[2]
        for name in {key, city}:
            zones.setdefault(name.replace("_", " ").casefold(), []).append(key)
    return MappingProxyType(zones)


def _fixed_zone(sign: str, hours: int, minutes: int) -> timezone:
    offset = timedelta(hours=hours, minutes=minutes)
    if offset > timedelta(hours=14):
        raise ToolError("no time zone is more than 14 hours from UTC")
    return timezone(-offset if sign == "-" else offset)


def build(_settings: Settings) -> AnyTool:
    """Return the tool; it needs no settings."""
    return current_time
