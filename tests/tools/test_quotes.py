"""Against recordings in the form of Yahoo Finance's chart service, served by a real HTTP server."""

from typing import Any

import pytest

from beckon_tools.shipped.quotes import quote_tool
from tests.serving import served
from tests.tools.serving import WebService, call, calling

SAP: dict[str, Any] = {
    "chart": {
        "result": [
            {
                "meta": {
                    "currency": "EUR", "symbol": "SAP.DE", "exchangeName": "GER", "fullExchangeName": "XETRA",
                    "instrumentType": "EQUITY", "regularMarketTime": 1795190400,
                    "gmtoffset": 3600, "timezone": "CET", "regularMarketPrice": 210.5,
                    "regularMarketDayHigh": 212.0, "regularMarketDayLow": 208.25,
                    "regularMarketVolume": 1200345,
                    "longName": "SAP SE", "shortName": "SAP SE", "chartPreviousClose": 200.0, "priceHint": 2,
                },
                "timestamp": [1795190400],
                "indicators": {"quote": [{"close": [210.5]}]},
            }
        ],
        "error": None,
    }
}  # fmt: skip


def refusal(code: str, description: str) -> dict[str, Any]:
    return {"chart": {"result": None, "error": {"code": code, "description": description}}}


async def ask(service: WebService, symbol: str) -> dict[str, Any]:
    async with served(service) as url:
        tool = quote_tool(f"{url}/v8/finance/chart")
        async with calling(tool) as caller:
            result = await caller.result(call("track", {"symbol": symbol}))
    assert isinstance(result, dict)
    return result


async def test_a_quote_is_reported_with_its_change() -> None:
    service = WebService()
    service.will_answer("/v8/finance/chart/SAP.DE", SAP)
    assert await ask(service, "sap.de") == {
        "symbol": "SAP.DE",
        "name": "SAP SE",
        "price": 210.5,
        "currency": "EUR",
        "exchange": "XETRA",
        "time": "2026-11-20T16:00:00Z",
        "previous_close": 200.0,
        "day_high": 212.0,
        "day_low": 208.25,
        "volume": 1200345,
        "change_percent": 5.25,
        "source": "Yahoo Finance",
    }


async def test_what_the_service_leaves_out_is_left_out() -> None:
    service = WebService()
    meta = {"symbol": "X", "regularMarketPrice": 1.0, "regularMarketTime": 0}
    service.will_answer("/v8/finance/chart/X", {"chart": {"result": [{"meta": meta}], "error": None}})
    assert set(await ask(service, "X")) == {"symbol", "price", "time", "source"}


@pytest.mark.parametrize("status", [404, 200])
async def test_an_unknown_symbol_is_a_tool_error(status: int) -> None:
    service = WebService()
    delisted = refusal("Not Found", "No data found, symbol may be delisted")
    unknown = delisted if status == 404 else {"chart": {"result": [], "error": None}}
    service.will_answer("/v8/finance/chart/10111", unknown, status)
    result = await ask(service, "10111")
    assert "no stock has the symbol '10111'" in result["error"]["message"]


@pytest.mark.parametrize(
    ("document", "status", "shown"),
    [
        (refusal("Bad Request", "Invalid range"), 400, "Invalid range"),
        ({"finance": {}}, 200, "form that is not known"),
        ({"chart": {"result": [{"meta": {"symbol": "X"}}]}}, 200, "form that is not known"),
        (b"Too Many Requests", 429, "no more requests"),
        (b"Edge: not allowed", 401, "status 401 and no JSON"),
    ],
)  # fmt: skip
async def test_what_the_service_gets_wrong_is_a_tool_error(document: object, status: int, shown: str) -> None:
    service = WebService()
    service.will_answer("/v8/finance/chart/X", document, status)
    assert shown in (await ask(service, "X"))["error"]["message"]


@pytest.mark.parametrize("symbol", ["", "../../admin", "A/B", "A?x=1", "A B", "..", "A" * 21, "A\n"])
async def test_a_symbol_cannot_leave_the_services_path(symbol: str) -> None:
    service = WebService()
    async with served(service) as url, calling(quote_tool(url)) as caller:
        assert (await caller.refusal(call("track", {"symbol": symbol}))).startswith("symbol: ")
    assert service.requests == []


async def test_an_index_is_requested_by_its_caret() -> None:
    service = WebService()
    service.will_answer("/v8/finance/chart/^GSPC", SAP)
    assert (await ask(service, "^GSPC"))["price"] == 210.5
