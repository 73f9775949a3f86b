"""What a model is shown of a result."""

import orjson
import pytest

from beckon_agent.tool_calls.outcome import result_for_model


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        ("plain text", "plain text"),
        ("", ""),
        (None, "null"),
        (True, "true"),
        ({"a": [1, 2.5, "é"]}, '{"a":[1,2.5,"é"]}'),
        ([], "[]"),
    ],
)
def test_text_is_shown_as_it_is_and_data_as_json(result: object, shown: str) -> None:
    assert result_for_model(result, 1000) == shown


def test_base64_data_is_left_out_wherever_it_is() -> None:
    sound = {"media_type": "audio/wav", "data_base64": "QUJD" * 1000}

    shown = result_for_model({"takes": [sound, {"inner": sound}]}, 1000)

    noted = {"media_type": "audio/wav", "note": "3000 bytes of data, left out here"}
    assert orjson.loads(shown) == {"takes": [noted, {"inner": noted}]}


def test_a_member_of_that_name_that_is_no_text_is_just_left_out() -> None:
    assert result_for_model({"data_base64": 5, "x": 1}, 1000) == '{"x":1}'


@pytest.mark.parametrize(("length", "cut"), [(99, False), (100, False), (101, True)])
def test_what_is_longer_than_the_limit_is_cut_with_a_note(length: int, cut: bool) -> None:
    shown = result_for_model("x" * length, 100)

    assert shown.startswith("x" * min(length, 100))
    assert ("[cut: the result has 101 characters, the first 100 are shown]" in shown) is cut
