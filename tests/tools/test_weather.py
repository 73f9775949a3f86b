"""Against recordings in the documented form of Open-Meteo, served by a real HTTP server."""

from typing import Any

import pytest

from beckon_tools.declaration import AnyTool
from beckon_tools.http_client import Outbound
from beckon_tools.shipped.weather import Place, WeatherService, choose_place, weather_tool
from tests.serving import served
from tests.tools.serving import WebService, call, calling

SAN_FRANCISCO = {
    "id": 5391959, "name": "San Francisco", "latitude": 37.77493, "longitude": -122.41942, "elevation": 16.0,
    "feature_code": "PPLA2", "country_code": "US", "admin1_id": 5332921, "timezone": "America/Los_Angeles",
    "population": 864816, "country_id": 6252001, "country": "United States", "admin1": "California",
    "admin2": "San Francisco",
}  # fmt: skip
SAN_FRANCISCO_CORDOBA = {
    "id": 3837675, "name": "San Francisco", "latitude": -31.42797, "longitude": -62.08266,
    "country_code": "AR", "country": "Argentina", "admin1": "Córdoba",
    "timezone": "America/Argentina/Cordoba",
}  # fmt: skip
PARIS = {
    "id": 2988507, "name": "Paris", "latitude": 48.85341, "longitude": 2.3488, "country_code": "FR",
    "country": "France", "admin1": "Île-de-France", "timezone": "Europe/Paris",
}  # fmt: skip
PARIS_TEXAS = {**PARIS, "country_code": "US", "country": "United States", "admin1": "Texas"}

FORECAST: dict[str, Any] = {
    "latitude": 37.763283, "longitude": -122.41286, "generationtime_ms": 0.07, "utc_offset_seconds": -28800,
    "timezone": "America/Los_Angeles", "timezone_abbreviation": "PST", "elevation": 18.0,
    "current_units": {"time": "iso8601", "interval": "seconds", "temperature_2m": "°F",
                      "apparent_temperature": "°F", "relative_humidity_2m": "%", "wind_speed_10m": "km/h",
                      "weather_code": "wmo code"},
    "current": {"time": "2026-11-20T15:30", "interval": 900, "temperature_2m": 58.1,
                "apparent_temperature": 55.9, "relative_humidity_2m": 71, "wind_speed_10m": 11.2,
                "weather_code": 3},
}  # fmt: skip


def recordings() -> WebService:
    service = WebService()
    service.will_answer(
        "/v1/search", {"results": [SAN_FRANCISCO_CORDOBA, SAN_FRANCISCO], "generationtime_ms": 0.6}
    )
    service.will_answer("/v1/forecast", FORECAST)
    return service


def tool_for(url: str, **limits: Any) -> AnyTool:
    outbound = Outbound("the weather service", **limits)
    return weather_tool(WeatherService(f"{url}/v1/search", f"{url}/v1/forecast", outbound))


async def ask(service: WebService, arguments: dict[str, str], **more: object) -> dict[str, Any]:
    async with served(service) as url, calling(tool_for(url, **more)) as caller:
        result = await caller.result(call("get.current.weather", arguments))
    assert isinstance(result, dict)
    return result


async def failure(service: WebService, location: str = "San Francisco", **more: object) -> str:
    result = await ask(service, {"location": location}, **more)
    assert result["error"]["reason"] == "tool_failed"
    return str(result["error"]["message"])


async def test_the_weather_of_the_place_that_is_meant_is_reported() -> None:
    service = recordings()
    result = await ask(service, {"location": "San Francisco, CA", "unit": "farenheit"})
    assert result == {
        "location": "San Francisco, California, United States",
        "time": "2026-11-20T15:30",
        "timezone": "America/Los_Angeles",
        "condition": "overcast",
        "temperature": 58.1,
        "feels_like": 55.9,
        "unit": "fahrenheit",
        "humidity_percent": 71,
        "wind_speed": 11.2,
        "wind_speed_unit": "km/h",
        "source": "Open-Meteo.com",
    }
    (search, search_query), (forecast, forecast_query) = service.requests
    assert (search, search_query["name"]) == ("/v1/search", "San Francisco")
    assert forecast == "/v1/forecast"
    assert (forecast_query["latitude"], forecast_query["longitude"]) == ("37.77493", "-122.41942")
    assert forecast_query["temperature_unit"] == "fahrenheit"
    assert service.user_agents == ["beckon-tools/0.1"] * 2


async def test_celsius_is_the_unit_where_none_is_given() -> None:
    service = recordings()
    assert (await ask(service, {"location": "San Francisco"}))["unit"] == "celsius"
    assert service.requests[1][1]["temperature_unit"] == "celsius"


@pytest.mark.parametrize(
    ("location", "region"),
    [
        ("Paris", "Île-de-France"),
        ("Paris, France", "Île-de-France"),
        ("Paris, fr", "Île-de-France"),
        ("Paris, TX", "Texas"),
        ("Paris, Texas, USA", "Texas"),
        ("Paris,", "Île-de-France"),
    ],
)
def test_a_region_distinguishes_places_of_one_name(location: str, region: str) -> None:
    places = [Place.model_validate(place) for place in (PARIS, PARIS_TEXAS)]
    assert choose_place(location, places).admin1 == region


async def test_a_place_that_is_unknown_is_a_tool_error() -> None:
    service = recordings()
    service.will_answer("/v1/search", {"generationtime_ms": 0.4})
    assert "no place called 'Atlantis' is known" in await failure(service, "Atlantis")


async def test_a_place_in_another_region_is_a_tool_error_that_names_the_choices() -> None:
    shown = await failure(recordings(), "San Francisco, Japan")
    assert "no 'San Francisco' is known in Japan" in shown
    assert "San Francisco, California, United States" in shown


async def test_a_service_that_is_unreachable_is_a_tool_error() -> None:
    async with calling(tool_for("http://127.0.0.1:1")) as caller:
        result = await caller.result(call("get.current.weather", {"location": "Rome"}))
    assert result == {
        "error": {"reason": "tool_failed", "message": "the weather service cannot be reached: ConnectError"}
    }


@pytest.mark.parametrize(
    ("path", "document", "status", "shown"),
    [
        (
            "/v1/search",
            {"error": True, "reason": "Parameter count must be between 1 and 100."},
            400,
            "count must",
        ),
        ("/v1/search", b"<html>", 200, "no JSON"),
        ("/v1/search", {"results": [{"name": "x"}]}, 200, "form that is not known: results.0.latitude"),
        ("/v1/search", b"", 500, "status 500"),
        ("/v1/search", b"", 429, "no more requests"),
        ("/v1/search", b"[" * 100_000, 200, "no JSON"),
        ("/v1/forecast", {"current": {}}, 200, "form that is not known"),
        ("/v1/forecast", b"", 503, "status 503"),
    ],
)
async def test_what_the_service_gets_wrong_is_a_tool_error(
    path: str, document: object, status: int, shown: str
) -> None:
    service = recordings()
    service.will_answer(path, document, status)
    assert shown in await failure(service)


async def test_a_redirect_is_not_followed() -> None:
    service = recordings()
    service.headers = [("location", "http://169.254.169.254/latest/meta-data")]
    service.will_answer("/v1/search", b"", 302)
    assert "status 302" in await failure(service)
    assert len(service.requests) == 1


async def test_an_answer_above_the_limit_is_not_read() -> None:
    service = recordings()
    service.will_answer("/v1/search", b" " * 5000)
    assert "more than 1000 bytes" in await failure(service, limit=1000)


async def test_an_answer_that_does_not_come_is_given_up() -> None:
    async def silent(scope: Any, receive: Any, _send: object) -> None:
        while scope["type"] == "http" and (await receive())["type"] != "http.disconnect":
            pass

    async with served(silent) as url, calling(tool_for(url, timeout=0.05)) as caller:
        result = await caller.result(call("get.current.weather", {"location": "Rome"}))
    assert isinstance(result, dict)
    assert result["error"]["message"] == "the weather service did not answer within 0.05 seconds"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "location: "),
        ({"location": "R"}, "location: "),
        ({"location": "Rome", "unit": "kelvin"}, "unit: "),
    ],
)
async def test_bad_arguments_ask_no_one(arguments: dict[str, str], named: str) -> None:
    service = recordings()
    async with served(service) as url, calling(tool_for(url)) as caller:
        assert named in await caller.refusal(call("get.current.weather", arguments))
    assert service.requests == []
