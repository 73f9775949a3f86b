"""The tool `get-current-weather`, for a place or one of several of its name."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field

from beckon_tools.declaration import AnyTool, Hints, tool
from beckon_tools.errors import ToolError
from beckon_tools.http_client import Outbound
from beckon_tools.settings import Settings

_US_STATES = (
    "AL Alabama,AK Alaska,AZ Arizona,AR Arkansas,CA California,CO Colorado,CT Connecticut,DE Delaware,"
    "DC District of Columbia,FL Florida,GA Georgia,HI Hawaii,ID Idaho,IL Illinois,IN Indiana,IA Iowa,"
    "KS Kansas,KY Kentucky,LA Louisiana,ME Maine,MD Maryland,MA Massachusetts,MI Michigan,MN Minnesota,"
    "MS Mississippi,MO Missouri,MT Montana,NE Nebraska,NV Nevada,NH New Hampshire,NJ New Jersey,"
    "NM New Mexico,NY New York,NC North Carolina,ND North Dakota,OH Ohio,OK Oklahoma,OR Oregon,"
    "PA Pennsylvania,RI Rhode Island,SC South Carolina,SD South Dakota,TN Tennessee,TX Texas,UT Utah,"
    "VT Vermont,VA Virginia,WA Washington,WV West Virginia,WI Wisconsin,WY Wyoming"
)
_STATES: Mapping[str, str] = MappingProxyType(
    {
        code.lower(): name.casefold()
        for code, _, name in (entry.partition(" ") for entry in _US_STATES.split(","))
    }
)
_COUNTRIES: Mapping[str, str] = MappingProxyType(
    {"usa": "us", "u.s.": "us", "uk": "gb", "great britain": "gb"}
)


class Place(BaseModel):
    """One result of Open-Meteo's geocoding, ordered there by how likely it is meant."""

    name: str
    latitude: float
    longitude: float
    country: str = ""
    country_code: str = ""
    admin1: str = ""
    admin2: str = ""

    @property
    def label(self) -> str:
        """The name with its region and country, for a reader."""
        return ", ".join(dict.fromkeys(part for part in (self.name, self.admin1, self.country) if part))

    def lies_in(self, region: str) -> bool:
        """Whether this is the name or code of the place's country, state or county."""
        wanted = region.strip().casefold()
        names = {self.country, self.country_code, self.admin1, self.admin2}
        known = {name.casefold() for name in names if name}
        in_state = self.country_code == "US" and _STATES.get(wanted) == self.admin1.casefold()
        return in_state or wanted in known or _COUNTRIES.get(wanted) in known


def choose_place(location: str, places: Sequence[Place]) -> Place:
    """Return the first place in every region that the location names; raise `ToolError`."""
    name, *regions = [part.strip() for part in location.split(",")]
    if not places:
        raise ToolError(
            f"no place called {name!r} is known; check the spelling, or name a larger place near it"
        )
    for place in places:
        if all(place.lies_in(region) for region in regions if region):
            return place
    known = "; ".join(dict.fromkeys(place.label for place in places[:4]))
    raise ToolError(f"no {name!r} is known in {', '.join(regions)}; there are {known}")


WEATHER: Mapping[int, str] = MappingProxyType(
    {
        0: "clear sky",
        1: "mainly clear",
        2: "partly cloudy",
        3: "overcast",
        45: "fog",
        48: "freezing fog",
        51: "light drizzle",
        53: "drizzle",
        55: "heavy drizzle",
        56: "light freezing drizzle",
        57: "freezing drizzle",
        61: "light rain",
        63: "rain",
        65: "heavy rain",
        66: "light freezing rain",
        67: "freezing rain",
        71: "light snow",
        73: "snow",
        75: "heavy snow",
        77: "snow grains",
        80: "light rain showers",
        81: "rain showers",
        82: "violent rain showers",
        85: "light snow showers",
        86: "heavy snow showers",
        95: "thunderstorm",
        96: "thunderstorm with light hail",
        99: "thunderstorm with heavy hail",
    }
)


Unit = Literal["celsius", "fahrenheit"]


def _normalise_unit(unit: object) -> object:
    """Accept any case, initials, and the spelling of Knative's blog."""
    known = {"c": "celsius", "f": "fahrenheit", "farenheit": "fahrenheit"}
    return known.get(unit.lower(), unit.lower()) if isinstance(unit, str) else unit


_OUTBOUND = Outbound("the weather service")


class _Found(BaseModel):
    results: list[Place] = []


class _Current(BaseModel):
    time: str
    temperature_2m: float
    apparent_temperature: float
    relative_humidity_2m: float
    wind_speed_10m: float
    weather_code: int


class _Forecast(BaseModel):
    timezone: str
    current_units: dict[str, str]
    current: _Current


class WeatherService:
    """Open-Meteo."""

    def __init__(
        self,
        geocoding_url: str = "https://geocoding-api.open-meteo.com/v1/search",
        forecast_url: str = "https://api.open-meteo.com/v1/forecast",
        outbound: Outbound = _OUTBOUND,
    ) -> None:
        self._geocoding_url = geocoding_url
        self._forecast_url = forecast_url
        self._outbound = outbound

    async def find_place(self, location: str) -> Place:
        """Return the place that a location such as "San Francisco, CA" names; raise `ToolError`."""
        name = location.split(",", maxsplit=1)[0].strip()
        query = {"name": name, "count": "20", "language": "en", "format": "json"}
        places = self._outbound.read(_Found, await self._fetch_document(self._geocoding_url, query))
        return choose_place(location, places.results)

    async def current_weather(self, place: Place, unit: Unit) -> dict[str, object]:
        """Return the weather at a place, as the tool's result."""
        query = {
            "latitude": str(place.latitude),
            "longitude": str(place.longitude),
            "current": ",".join(name for name in _Current.model_fields if name != "time"),
            "temperature_unit": unit,
            "timezone": "auto",
        }
        forecast = self._outbound.read(_Forecast, await self._fetch_document(self._forecast_url, query))
        current, units = forecast.current, forecast.current_units
        return {
            "location": place.label,
            "time": current.time,
            "timezone": forecast.timezone,
            "condition": WEATHER.get(current.weather_code, f"weather code {current.weather_code}"),
            "temperature": current.temperature_2m,
            "feels_like": current.apparent_temperature,
            "unit": unit,
            "humidity_percent": current.relative_humidity_2m,
            "wind_speed": current.wind_speed_10m,
            "wind_speed_unit": units.get("wind_speed_10m", "km/h"),
            "source": "Open-Meteo.com",
        }

    async def _fetch_document(self, url: str, query: dict[str, str]) -> object:
        answer = await self._outbound.get_json(url, query)
        document = answer.document
        if answer.status >= 400:
            reason = document.get("reason") if isinstance(document, dict) else None
            raise ToolError(f"the weather service refused the question: {reason or answer.status}")
        return document


def build(_settings: Settings) -> AnyTool:
    """Return the tool; it needs no settings."""
    return weather_tool(WeatherService())


def weather_tool(service: WeatherService) -> AnyTool:
    """Return the tool for a weather service."""

    @tool(type="get.current.weather", hints=Hints(read_only=True, idempotent=True))
    async def get_current_weather(
        location: Annotated[
            str,
            Field(
                description="The city and state or country, e.g. San Francisco, CA",
                min_length=2,
                max_length=200,
            ),
        ],
        unit: Annotated[
            Unit, BeforeValidator(_normalise_unit), Field(description="The unit of the temperature")
        ] = "celsius",
    ) -> dict[str, object]:
        """Get the current weather in a given location."""
        return await service.current_weather(await service.find_place(location), unit)

    return get_current_weather
