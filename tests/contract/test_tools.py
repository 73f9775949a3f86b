import pytest

from beckon_contract.resources.tools import MAX_DESCRIPTION, Tool, declare
from beckon_contract.schema.lowering import Profile

WEATHER = Tool(
    name="get_weather",
    namespace="default",
    event_type="get.weather",
    type="get.weather",
    source=None,
    description="The weather.",
    parameters={"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    parameters_from="spec.schemaData",
)


def described(text: str) -> str:
    tool = Tool(
        name="t",
        namespace="n",
        event_type="t",
        type="t",
        source=None,
        description=text,
        parameters={},
        parameters_from="",
    )
    function = declare(tool)["function"]
    assert isinstance(function["description"], str)
    return function["description"]


@pytest.mark.parametrize("profile", list(Profile))
def test_a_tool_is_declared_as_a_function_with_its_name_and_parameters(profile: Profile) -> None:
    declaration = declare(WEATHER, profile)

    assert declaration["type"] == "function"
    assert declaration["function"]["name"] == "get_weather"
    assert declaration["function"]["description"] == "The weather."
    assert declaration["function"]["parameters"]["properties"]["place"]["type"] == "string"


def test_strict_mode_is_requested_where_the_schema_can_be_said_in_it() -> None:
    assert declare(WEATHER, Profile.OPENAI_STRICT)["function"]["strict"] is True
    assert "strict" not in declare(WEATHER, Profile.OPENAI)["function"]


def test_a_description_is_cut_to_what_providers_take() -> None:
    assert described("x" * MAX_DESCRIPTION) == "x" * MAX_DESCRIPTION
    assert described("x" * (MAX_DESCRIPTION + 1)) == "x" * (MAX_DESCRIPTION - 1) + "…"
