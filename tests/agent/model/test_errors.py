"""Refusals of model servers, in their own shapes: who must act, and the message for them."""

import json
import logging
import traceback
from email.utils import formatdate

import pytest

from beckon_agent.model.client import ModelClient
from beckon_agent.model.errors import (
    ContentNotSupported,
    ContextTooLong,
    ErrorReader,
    ModelAuthError,
    ModelError,
    ModelOverloaded,
    ModelRefused,
    ModelUnavailable,
    QuotaExhausted,
    RateLimited,
    SchemaRejected,
    ToolsNotSupported,
    requested_wait,
)
from beckon_agent.model.transport import Patience
from tests.agent.scripted_model import (
    KEY,
    Reply,
    chunk,
    items_of,
    refuses,
    scripted_model,
    sse,
    streamed,
    turn_after,
)

READER = ErrorReader("model.example")

TOOLS = [
    (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
    (500, "Unsupported param: tools"),
    (500, "Unknown method: keys at row 12, column 8"),
    (404, "No endpoints found that support tool use. To learn more about provider routing, visit …"),
    (400, "`tool calling` is not supported with this model"),
    (400, "This model does not support function calling"),
    (422, "tools is not supported in this model"),
    (500, "Cannot use tools with stream"),
]
SCHEMAS = [
    (400, "Failed to initialize samplers: failed to parse grammar"),
    (400, "Invalid schema for function 'f': In context=(), object schema missing properties."),
    (500, "Error parsing grammar: expecting name at"),
    (
        400,
        "Unknown name \"allOf\" at 'tools[0].function_declarations[0].parameters'",
    ),
]
CONTEXTS = [
    (
        400,
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    ),
    (400, "the request exceeds the available context size, try increasing it"),
    (400, "prompt is too long: 210000 tokens > 200000 maximum"),
    (413, "too big"),
    (400, "input is too long for requested model"),
]
CONTENTS = [
    (400, "this model does not support image input (ref: b8bd630e-4a39-4b57-82af-9158ee9d5703)"),
    (400, "Invalid content type. image_url is only supported by certain models."),
    (500, "image input is not supported by this server"),
    (500, "audio input is not supported - hint: if this is unexpected, you may need to provide the mmproj"),
    (500, 'Failed to parse messages: Unsupported content part type: "image_url"; messages = []'),
    (400, "json: cannot unmarshal array into Go struct field Message.messages.content of type string"),
    (404, "No endpoints found that support image input"),
    (400, "At most 0 image(s) may be provided in one prompt."),
    (400, "This model does not support audio input"),
    (422, "messages[0]: unknown variant `image_url`, expected `text`"),
]
KEYS = [
    (401, "Unauthorized"),
    (403, "Your account may not use this model"),
    (400, "API key not valid. Please pass a valid API key."),
]
OTHERS = [
    (400, "Tool choice must be auto"),
    (400, "messages[0]: unknown role"),
    (404, "model 'llama9' not found"),
    (422, "temperature must be between 0 and 2"),
]
UNAVAILABLE: dict[int, type[ModelError]] = {429: RateLimited, 503: ModelOverloaded}
BUSY = [
    (429, "slow down: 10000 tokens per minute"),
    (500, "oops"),
    (502, "Bad Gateway"),
    (503, ""),
    (529, "overloaded"),
]

CASES = [
    *((ToolsNotSupported, *case) for case in TOOLS),
    *((SchemaRejected, *case) for case in SCHEMAS),
    *((ContextTooLong, *case) for case in CONTEXTS),
    *((ContentNotSupported, *case) for case in CONTENTS),
    *((ModelAuthError, *case) for case in KEYS),
    (QuotaExhausted, 402, "Insufficient Balance"),
    *((ModelRefused, *case) for case in OTHERS),
    *((UNAVAILABLE.get(case[0], ModelUnavailable), *case) for case in BUSY),
]


@pytest.mark.parametrize(("kind", "status", "message"), CASES)
def test_an_error_says_who_must_act(kind: type[ModelError], status: int, message: str) -> None:
    error = READER.read_response(
        status, {}, json.dumps({"error": {"message": message, "code": None}}).encode()
    )
    assert type(error) is kind
    assert error.status == status
    assert message in str(error)


def test_an_exhausted_quota_is_no_passing_trouble() -> None:
    body = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
    error = READER.read_response(429, {}, json.dumps(body).encode())
    assert type(error) is QuotaExhausted
    assert error.ours == "insufficient_quota"


SHAPES = [
    b'{"error":{"message":"too spicy","type":"invalid_request_error","param":null,"code":null}}',
    b'{"object":"error","message":"too spicy","type":"invalid_request_message_order","code":"3230"}',
    b'[{"error":{"code":400,"message":"too spicy","status":"INVALID_ARGUMENT"}}]',
    b'{"error":"too spicy"}',
    b'{"message":"too spicy"}',
    b'{"detail":"too spicy"}',
    b'{"detail":[{"loc":["body","messages"],"msg":"too spicy","type":"value_error"}]}',
    b'{"error":{"error":{"message":"too spicy"}}}',
    b'{"type":"about:blank","title":"Bad","detail":"too spicy","status":400}',
    b'"too spicy"',
    b"too spicy",
    b"<html><style>b {}</style><body><h1>400</h1>\n<p>too spicy</p></body></html>",
]


@pytest.mark.parametrize("body", SHAPES)
@pytest.mark.parametrize("content_type", ["application/json", "application/octet-stream", ""])
async def test_an_error_body_is_read_in_whatever_shape_it_comes(body: bytes, content_type: str) -> None:
    with pytest.raises(ModelRefused, match="too spicy") as caught:
        await turn_after(Reply([body], 400, content_type))
    assert caught.value.status == 400
    assert "<" not in str(caught.value)


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b"null", b"7", b"\xff\xfe", b'{"error":{}}', b"[" * 5000]
)
def test_an_error_that_says_nothing_is_still_reported(body: bytes) -> None:
    error = READER.read_response(418, {}, body)
    assert type(error) is ModelRefused
    assert str(error).startswith("model.example refused the request (418): ")


def test_a_long_error_is_cut() -> None:
    assert len(str(READER.read_response(400, {}, b"x" * 100_000))) < 1100


def test_an_error_keeps_the_servers_code() -> None:
    assert (
        READER.read_response(404, {}, b'{"error":{"message":"m","code":"model_not_found"}}').code
        == "model_not_found"
    )
    assert (
        READER.read_response(400, {}, b'[{"error":{"code":400,"status":"INVALID_ARGUMENT"}}]').code
        == "INVALID_ARGUMENT"
    )


async def test_mistrals_flat_error_within_a_stream_is_read() -> None:
    flat = {"object": "error", "message": "Unexpected role 'system'", "type": "x", "code": 422}
    with pytest.raises(ModelRefused, match="Unexpected role"):
        await turn_after(streamed(flat))


@pytest.mark.parametrize(
    "reply",
    [
        refuses(401, f"Incorrect API key provided: {KEY}"),
        refuses(500, f"GET /?key={KEY} failed"),
        Reply([f"<p>Authorization: Bearer {KEY}</p>".encode()], 403, "text/html"),
        streamed({"error": {"message": f"bad key {KEY}", "code": 400}}),
        streamed(chunk({"content": "hello"}), {"error": {"message": f"bad key {KEY}"}}),
        Reply([f"data: {KEY}\n\n".encode()]),
        Reply([sse(chunk({"content": "hello"}), done=False)], breaks_off=True),
    ],
)
async def test_no_error_and_no_log_line_shows_the_key(reply: Reply, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with scripted_model(reply, reply) as model:
        client = ModelClient(model.base_url, KEY, "m", patience=Patience(attempts=2, first_wait=0.001))
        async with client:
            with pytest.raises(ModelError) as caught:
                await items_of(client)
        assert KEY not in repr(vars(client)) + repr(client)
    assert KEY not in "".join(traceback.format_exception(caught.value)) + repr(caught.value) + caplog.text
    assert model.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("key", ["sk-\u00fc-umlaut-key", "sk-new\nline-key", "sk-tab\tkey-long"])
def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ValueError, match="no HTTP header can carry") as caught:
        ModelClient("http://127.0.0.1:1/v1", key, "m")
    assert key not in str(caught.value)


async def test_blanks_beside_a_key_are_dropped_and_an_empty_key_sends_no_header() -> None:
    async with scripted_model(streamed(chunk(finish="stop")), streamed(chunk(finish="stop"))) as model:
        for key in (f" {KEY}\n", ""):
            async with ModelClient(model.base_url, key, "m") as client:
                await items_of(client)
    assert model.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert "authorization" not in model.requests[1].headers


@pytest.mark.parametrize("code", ["9" * 5000, "٤٠٤", -404, 2**70])
def test_a_code_that_is_no_status_is_none(code: object) -> None:
    error = READER.in_answer("", {"error": {"message": "no", "code": code}})

    assert isinstance(error, ModelUnavailable)
    assert error.status is None


@pytest.mark.parametrize("base_url", ["", "localhost:11434/v1", "ftp://model/v1", "http://"])
def test_a_base_url_that_is_none_is_refused_with_an_example(base_url: str) -> None:
    with pytest.raises(ValueError, match=r"http://127\.0\.0\.1:11434/v1"):
        ModelClient(base_url, KEY, "m")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "120000"}, 120.0),
        ({"retry-after": "-1"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": formatdate(0)}, 0.0),
        ({"retry-after": "inf"}, 86_400.0),
        ({"retry-after-ms": "nan", "retry-after": "Mon, 01 Jan 99999 00:00:00 GMT"}, None),
    ],
)
def test_retry_after_is_seconds_milliseconds_or_a_date(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert requested_wait(headers) == seconds
