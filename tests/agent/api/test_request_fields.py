"""The table of request fields: complete by the types of the `openai` package, and true of the requests."""

from typing import Any

import pytest
from openai.types.chat import completion_create_params as chat_params
from openai.types.responses import response_create_params as responses_params

from beckon_agent.api.chat.request import ChatRequest
from beckon_agent.api.http.errors import ApiError
from beckon_agent.api.request_fields import CHAT, REQUEST_FIELDS, RESPONSES, Api, fields_of
from beckon_agent.api.responses.request import CreateRequest

CHAT_BODY: dict[str, Any] = {"model": "beckon", "messages": [{"role": "user", "content": "hi"}]}
REFUSED = [
    (api, field.name) for api in (CHAT, RESPONSES) for field in fields_of(api) if field.treatment == "refused"
]
WANTING: dict[str, Any] = {"n": 2, "truncation": "auto", "modalities": ["text", "audio"]}


def read(api: Api, **fields: Any) -> None:
    """Read a request as its route does."""
    if api == CHAT:
        ChatRequest.model_validate(CHAT_BODY | fields).check_support()
    else:
        CreateRequest.model_validate({"input": "hi", **fields}).check_support()


@pytest.mark.parametrize(
    ("api", "params"),
    [
        (CHAT, chat_params.CompletionCreateParamsStreaming),
        (RESPONSES, responses_params.ResponseCreateParamsStreaming),
    ],
)
def test_every_field_of_the_package_has_one_row(api: Api, params: type) -> None:
    names = [field.name for field in fields_of(api)]

    assert sorted(names) == sorted(params.__annotations__)


@pytest.mark.parametrize(("api", "model"), [(CHAT, ChatRequest), (RESPONSES, CreateRequest)])
def test_every_row_is_a_field_of_the_request(api: Api, model: type[ChatRequest | CreateRequest]) -> None:
    assert {field.name for field in fields_of(api)} == model.model_fields.keys() - {"beckon"}


@pytest.mark.parametrize(("api", "name"), REFUSED)
def test_a_refused_field_is_refused_with_its_name_unless_it_is_empty(api: Api, name: str) -> None:
    (row,) = [field for field in REQUEST_FIELDS if field.name == name]
    for harmless in (None, *row.harmless):
        read(api, **{name: harmless})
    with pytest.raises(ApiError, match=f"'{name}' is not served: ") as caught:
        read(api, **{name: WANTING.get(name, {"id": "x"} if name != "functions" else [{"name": "f"}])})

    assert (caught.value.status, caught.value.param, caught.value.code) == (400, name, "unsupported_value")


@pytest.mark.parametrize("api", [CHAT, RESPONSES])
def test_padding_of_a_stream_is_refused(api: Api) -> None:
    read(api, stream_options={"include_obfuscation": False})
    with pytest.raises(ApiError, match="no event is padded"):
        read(api, stream_options={"include_obfuscation": True})


@pytest.mark.parametrize(("api", "name", "other"), [(RESPONSES, "seed", CHAT), (CHAT, "include", RESPONSES)])
def test_a_field_of_the_other_api_is_refused_and_one_of_no_api_is_not(
    api: Api, name: str, other: Api
) -> None:
    read(api, **{name: None, "top_k": 40})
    with pytest.raises(
        ApiError, match=f"'{name}' is a field of {other}, not of {api}; leave it out"
    ) as caught:
        read(api, **{name: "x"})

    assert (caught.value.status, caught.value.param) == (400, name)
