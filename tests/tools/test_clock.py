import contextlib
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beckon_tools import ToolError
from beckon_tools.shipped.clock import current_time, describe_moment, find_zone
from tests.tools.serving import call, calling

SUMMER = datetime(2026, 7, 15, 12, 0, tzinfo=UTC)
WINTER = datetime(2026, 1, 15, 23, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "moment", "time", "weekday"),
    [
        ("UTC", SUMMER, "2026-07-15T12:00:00+00:00", "Wednesday"),
        ("Europe/Berlin", SUMMER, "2026-07-15T14:00:00+02:00", "Wednesday"),
        ("Europe/Berlin", WINTER, "2026-01-16T00:30:00+01:00", "Friday"),
        ("europe/berlin", SUMMER, "2026-07-15T14:00:00+02:00", "Wednesday"),
        ("Berlin", SUMMER, "2026-07-15T14:00:00+02:00", "Wednesday"),
        ("Tokyo, Japan", SUMMER, "2026-07-15T21:00:00+09:00", "Wednesday"),
        ("new york", SUMMER, "2026-07-15T08:00:00-04:00", "Wednesday"),
        ("Los_Angeles", SUMMER, "2026-07-15T05:00:00-07:00", "Wednesday"),
        ("Kolkata", SUMMER, "2026-07-15T17:30:00+05:30", "Wednesday"),
        ("UTC+2", SUMMER, "2026-07-15T14:00:00+02:00", "Wednesday"),
        ("gmt-03:30", SUMMER, "2026-07-15T08:30:00-03:30", "Wednesday"),
        ("+0545", SUMMER, "2026-07-15T17:45:00+05:45", "Wednesday"),
        ("Indianapolis", SUMMER, "2026-07-15T08:00:00-04:00", "Wednesday"),
    ],
)
def test_the_time_is_that_of_the_zone_or_city(name: str, moment: datetime, time: str, weekday: str) -> None:
    shown = describe_moment(moment, find_zone(name, moment))
    assert (shown["time"], shown["weekday"]) == (time, weekday)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Atlantis", "no time zone"),
        ("", "no time zone"),
        ("Berlni", "Europe/Berlin"),
        ("UTC+25", "14 hours"),
        ("../../etc/passwd", "no time zone"),
        ("/etc/localtime", "no time zone"),
    ],
)
def test_what_names_no_zone_is_reported(name: str, shown: str) -> None:
    with pytest.raises(ToolError, match=shown):
        find_zone(name, SUMMER)


@given(st.sampled_from(sorted(available_timezones())))
def test_every_zone_is_found_by_its_own_name(key: str) -> None:
    assert (
        SUMMER.astimezone(find_zone(key, SUMMER)).utcoffset() == SUMMER.astimezone(ZoneInfo(key)).utcoffset()
    )


@given(st.text(max_size=40))
def test_any_text_is_a_zone_or_a_clear_error(text: str) -> None:
    with contextlib.suppress(ToolError):
        assert describe_moment(SUMMER, find_zone(text, SUMMER))["weekday"] in (
            "Wednesday",
            "Tuesday",
            "Thursday",
        )


async def test_the_tool_shows_the_time_without_arguments() -> None:
    async with calling(current_time) as caller:
        result = await caller.result(call("current.time"))
    assert isinstance(result, dict)
    assert result["timezone"] == "UTC"
    assert datetime.fromisoformat(result["time"]).utcoffset() is not None
