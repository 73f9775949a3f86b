"""The tool `track`: the price of a share, from Yahoo Finance's chart service, which needs no key."""

from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import quote

from pydantic import BaseModel, Field

from beckon_tools.declaration import AnyTool, Hints, tool
from beckon_tools.errors import ToolError
from beckon_tools.http_client import Outbound
from beckon_tools.settings import Settings

# A letter or digit first (or ^ for an index): no symbol can leave the service's path.
_SYMBOL = r"^[A-Za-z0-9^][A-Za-z0-9.^=_-]{0,19}$"


class _Meta(BaseModel):
    symbol: str
    currency: str | None = None
    exchange: str | None = Field(None, alias="fullExchangeName")
    name: str | None = Field(None, alias="longName")
    price: float = Field(alias="regularMarketPrice")
    time: int = Field(alias="regularMarketTime")
    previous: float | None = Field(None, alias="chartPreviousClose")
    high: float | None = Field(None, alias="regularMarketDayHigh")
    low: float | None = Field(None, alias="regularMarketDayLow")
    volume: int | None = Field(None, alias="regularMarketVolume")


class _Result(BaseModel):
    meta: _Meta


class _Error(BaseModel):
    code: str = ""
    description: str = ""


class _Chart(BaseModel):
    result: list[_Result] | None = None
    error: _Error | None = None


class _Document(BaseModel):
    chart: _Chart


def build(_settings: Settings) -> AnyTool:
    """Return the tool for Yahoo Finance's charts; it needs no settings."""
    return quote_tool("https://query1.finance.yahoo.com/v8/finance/chart")


def quote_tool(base: str) -> AnyTool:
    """Return the tool for the chart service at an address."""
    outbound = Outbound("the quote service")

    @tool(type="track", hints=Hints(read_only=True, idempotent=True))
    async def track(
        symbol: Annotated[
            str,
            Field(
                description="The ticker symbol, outside the US with its exchange: AAPL, SAP.DE",
                pattern=_SYMBOL,
            ),
        ],
    ) -> dict[str, object]:
        """Track the latest price of a stock: quote, change and day range of a share, by its symbol."""
        url = f"{base}/{quote(symbol.upper(), safe='')}"
        answer = await outbound.get_json(url, {"range": "1d", "interval": "1d"})
        chart = outbound.read(_Document, answer.document).chart
        return _to_quote(_read_meta(symbol, answer.status, chart))

    return track


def _read_meta(symbol: str, status: int, chart: _Chart) -> _Meta:
    if status == 404 or (not chart.result and not chart.error):
        raise ToolError(
            f"no stock has the symbol {symbol!r}; outside the US add the exchange, as in SAP.DE or 600519.SS"
        )
    if chart.error or not chart.result:
        described = chart.error.description if chart.error else f"status {status}"
        raise ToolError(f"the quote service refused the symbol {symbol!r}: {described}")
    return chart.result[0].meta


def _to_quote(meta: _Meta) -> dict[str, object]:
    facts: dict[str, object] = {
        "symbol": meta.symbol,
        "name": meta.name,
        "price": meta.price,
        "currency": meta.currency,
        "exchange": meta.exchange,
        "time": datetime.fromtimestamp(meta.time, UTC).isoformat().replace("+00:00", "Z"),
        "previous_close": meta.previous,
        "day_high": meta.high,
        "day_low": meta.low,
        "volume": meta.volume,
    }
    if meta.previous:
        facts["change_percent"] = round((meta.price / meta.previous - 1) * 100, 2)
    facts["source"] = "Yahoo Finance"
    return {name: value for name, value in facts.items() if value is not None}
