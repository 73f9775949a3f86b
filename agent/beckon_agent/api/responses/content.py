"""Content parts: from the API's to those of chat completions, and back.

Model servers speak chat completions: https://platform.openai.com/docs/api-reference/chat/create.
An error of validation names the place of the part.
"""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, TypeAdapter, ValidationError, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue, SkipJsonSchema

from beckon_agent.api.http.errors import ApiError
from beckon_agent.core import json_values

Model = TypeVar("Model", bound=BaseModel)


class SchemaOf:
    """Describes a value that is validated later by the schema of another type."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def __get_pydantic_json_schema__(self, _: object, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the schema; the other type costs nothing before."""
        return handler(TypeAdapter(self._kind).core_schema)


def read_part(model: type[Model], value: object, place: str) -> Model:
    """Validate a value as a model. Raises `ApiError` with the first error and its place."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first: Any = error.errors(include_input=False, include_url=False)[0]
        where = ".".join([place, *(str(part) for part in first["loc"])])
        detail = str(first["msg"]).removeprefix("Value error, ")
        raise ApiError(400, f"{where}: {detail}", code="invalid_request", param=where) from error


def unsupported_error(place: str, message: str) -> ApiError:
    """Return the error for an unsupported feature of the API."""
    return ApiError(400, f"{place}: {message}", code="unsupported_value", param=place)


Part = dict[str, Any]
"""One part of a message's content."""

_URLS = ("https://", "http://", "data:image/")
_SHOWN = 40


class TextPart(BaseModel):
    """Text of any side."""

    type: Literal["input_text", "output_text", "text", "summary_text", "reasoning_text"]
    text: str


class RefusalPart(BaseModel):
    """A refusal of the model."""

    type: Literal["refusal"]
    refusal: str


class ImagePart(BaseModel):
    """An image, by its address or as data."""

    model_config = ConfigDict(json_schema_extra={"required": ["type", "image_url"]})

    type: Literal["input_image"]
    image_url: Annotated[
        str | None, WithJsonSchema({"type": "string", "pattern": "^(https?://|data:image/)"})
    ] = None
    file_id: SkipJsonSchema[str | None] = None
    detail: Literal["low", "high", "auto", "original"] | None = None


class InputAudio(BaseModel):
    """Audio as data."""

    data: str
    format: Literal["mp3", "wav"]


class AudioPart(BaseModel):
    """An audio file."""

    type: Literal["input_audio"]
    input_audio: InputAudio


class FilePart(BaseModel):
    """A file as data."""

    model_config = ConfigDict(json_schema_extra={"required": ["type", "file_data"]})

    type: Literal["input_file"]
    file_data: Annotated[str | None, WithJsonSchema({"type": "string"})] = None
    file_id: SkipJsonSchema[str | None] = None
    file_url: SkipJsonSchema[str | None] = None
    filename: str | None = None


# `video_url` is not OpenAI's; vLLM and others take it.
_CHAT_PARTS: dict[str, type] = {
    "text": str, "refusal": str, "image_url": dict, "input_audio": dict, "file": dict, "video_url": dict,
}  # fmt: skip


def check_chat_part(part: Part, place: str) -> None:
    """Raise `ApiError` for a content part unknown to chat completions."""
    kind = str(part.get("type"))
    if kind not in _CHAT_PARTS:
        message = f"content of the type {kind[:_SHOWN]!r} is not taken; send {', '.join(_CHAT_PARTS)}"
        raise unsupported_error(f"{place}.type", message)
    if not isinstance(part.get(kind), _CHAT_PARTS[kind]):
        form = "a string" if _CHAT_PARTS[kind] is str else "an object"
        message = f"{place}.{kind}: must be {form}"
        raise ApiError(400, message, code="invalid_request", param=f"{place}.{kind}")


Content = Annotated[Any, SchemaOf(str | list[TextPart | RefusalPart | ImagePart | AudioPart | FilePart])]
"""The content of a message; `chat_content` validates it."""


def chat_content(content: object, place: str) -> str | list[Part]:
    """Return a message content in the form of chat completions.

    Text alone becomes a string. Raises `ApiError` for content that cannot be sent to a model server.
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise unsupported_error(place, "must be a string or a list of content parts")
    parts = [_chat_part(part, f"{place}.{index}") for index, part in enumerate(content)]
    if all(part["type"] == "text" for part in parts):
        return "".join(part["text"] for part in parts)
    return parts


def text_of(content: str | list[Part]) -> str:
    """Return the texts of a chat content."""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def non_text_parts(content: str | list[Part]) -> list[Part]:
    """Return the non-text parts of a chat content."""
    return [] if isinstance(content, str) else [part for part in content if part["type"] != "text"]


def input_parts(content: object) -> list[Part]:
    """Return a chat content as parts of an input message of the API."""
    if isinstance(content, list):
        return [_input_part(json_values.as_mapping(part)) for part in content]
    return [{"type": "input_text", "text": json_values.as_text(content)}]


def _chat_part(part: object, place: str) -> Part:
    kind = str(json_values.as_mapping(part).get("type"))
    match kind:
        case "input_text" | "output_text" | "text" | "summary_text" | "reasoning_text":
            return {"type": "text", "text": read_part(TextPart, part, place).text}
        case "refusal":
            return {"type": "text", "text": read_part(RefusalPart, part, place).refusal}
        case "input_image":
            return _chat_image(read_part(ImagePart, part, place), place)
        case "input_audio":
            sound = read_part(AudioPart, part, place).input_audio
            return {"type": "input_audio", "input_audio": sound.model_dump()}
        case "input_file":
            return _chat_file(read_part(FilePart, part, place), place)
    message = (
        f"content of the type {kind[:_SHOWN]!r} is not taken; "
        "send input_text, input_image, input_audio or input_file"
    )
    raise unsupported_error(place, message)


def _chat_image(image: ImagePart, place: str) -> Part:
    if image.file_id is not None or image.image_url is None:
        message = "there is no file store: send the image as 'image_url', an address or a data: URL"
        raise unsupported_error(place, message)
    if not image.image_url.startswith(_URLS):
        raise unsupported_error(f"{place}.image_url", "must begin with https://, http:// or data:image/")
    url: dict[str, str] = {"url": image.image_url}
    if image.detail in ("low", "high"):
        url["detail"] = image.detail
    return {"type": "image_url", "image_url": url}


def _chat_file(file: FilePart, place: str) -> Part:
    if file.file_id is not None:
        raise unsupported_error(
            f"{place}.file_id", "there is no file store: send the file itself as 'file_data'"
        )
    if file.file_url is not None:
        message = "files are not fetched from addresses: send the file itself as 'file_data'"
        raise unsupported_error(f"{place}.file_url", message)
    if file.file_data is None:
        message = "send the file as 'file_data', such as data:application/pdf;base64,… with a 'filename'"
        raise unsupported_error(place, message)
    return {"type": "file", "file": {"filename": file.filename or "file", "file_data": file.file_data}}


def _input_part(part: Any) -> Part:
    match part.get("type"):
        case "image_url":
            image = json_values.as_mapping(part.get("image_url"))
            return {
                "type": "input_image",
                "detail": json_values.as_text(image.get("detail")) or "auto",
                "image_url": json_values.as_text(image.get("url")),
            }
        case "input_audio":
            return {"type": "input_audio", "input_audio": part.get("input_audio")}
        case "file":
            file = json_values.as_mapping(part.get("file"))
            return {
                "type": "input_file",
                "filename": file.get("filename"),
                "file_data": file.get("file_data"),
            }
        case _:
            return {"type": "input_text", "text": json_values.as_text(part.get("text"))}
