"""The result of a tool, as the JSON data of its reply event."""

import base64
from dataclasses import dataclass

from pydantic import ConfigDict, TypeAdapter

from beckon_contract.jsontext import loads

_JSON = TypeAdapter(object, config=ConfigDict(ser_json_bytes="base64", ser_json_inf_nan="constants"))


@dataclass(frozen=True, slots=True)
class Media:
    """Bytes of a media type, such as a sound.

    They become JSON data that a page can play or show.
    """

    media_type: str
    data: bytes

    def to_document(self) -> dict[str, str]:
        """Return `{"media_type", "data_base64"}`."""
        return {"media_type": self.media_type, "data_base64": base64.b64encode(self.data).decode()}


class NotJson(ValueError):
    """The function's result cannot be written as JSON."""


def to_data(result: object) -> bytes:
    """Write a tool's result as JSON: any JSON value, dataclasses, pydantic models, `Media`, bytes.

    Raises `NotJson`, also for infinite and not-a-number floats, which JSON has no form for.
    """
    if isinstance(result, bytes):
        result = Media("application/octet-stream", result)
    if isinstance(result, Media):
        result = result.to_document()
    try:
        data = _JSON.dump_json(result)
        if b"NaN" in data or b"Infinity" in data:
            loads(data)
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from None
    return data
