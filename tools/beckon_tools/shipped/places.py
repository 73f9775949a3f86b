"""Which of the places of one name is meant: "San Francisco, CA", "Paris, Texas", "London, UK"."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pydantic import BaseModel

from beckon_tools.errors import ToolError

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


def choose(location: str, places: Sequence[Place]) -> Place:
    """Return the first place that lies in every region that the location names; raise `ToolError`."""
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
