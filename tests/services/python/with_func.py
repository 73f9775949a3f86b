"""A function of Knative Functions, served by func-python as `func run` does."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from cloudevents.core.v1.event import CloudEvent
from func_python.cloudevent import serve


class Function:
    """The function; its path says whether it answers with the attribute that Beckon asks for."""

    async def handle(
        self, scope: Mapping[str, Any], _receive: object, send: Callable[[CloudEvent], Awaitable[None]]
    ) -> None:
        """Answer the event in the scope."""
        call: CloudEvent = scope["event"]
        arguments = call.get_data()
        assert isinstance(arguments, dict)
        attributes = {
            "source": "/services/func",
            "type": f"{call.get_type()}.done",
            "datacontenttype": "application/json",
        }
        if scope["path"] == "/func-replyid":
            attributes["replyid"] = call.get_extension("correlationid")
        await send(CloudEvent(attributes, {"greeting": f"Hello {arguments['name']}"}))


def new() -> Function:
    """Return the function, as func-python asks for it."""
    return Function()


if __name__ == "__main__":
    serve(new)
