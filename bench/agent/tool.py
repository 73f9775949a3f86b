"""The tool that every agent here calls: plain JSON over HTTP, or a CloudEvent, whichever comes.

`POST / {"city": "city-17"}` answers with a temperature that depends on the city; an event with the
same data is answered with an event. `python -m bench.agent.tool` prints its port and ends when its
input does.
"""

import orjson

from bench.agent.serving import Message, Receive, Send, answer, read_body, serve


def celsius_of(city: int) -> int:
    """Return the temperature of a city."""
    return city * 7 % 40


async def tool(scope: Message, receive: Receive, send: Send) -> None:
    """Answer one request."""
    city: str = orjson.loads(await read_body(receive))["city"]
    result = orjson.dumps({"city": city, "celsius": celsius_of(int(city.removeprefix("city-")))})
    given = dict(scope["headers"])
    await answer(send, result, _reply(given) if b"ce-type" in given else None)


def _reply(given: dict[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    return [
        (b"ce-specversion", b"1.0"),
        (b"ce-id", b"reply-" + given[b"ce-id"]),
        (b"ce-source", b"/bench/tool"),
        (b"ce-type", b"bench.reply"),
        (b"ce-replyid", given[b"ce-correlationid"]),
    ]


if __name__ == "__main__":
    serve(tool)
