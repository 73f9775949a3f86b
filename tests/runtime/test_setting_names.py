"""Wrong settings are reported by the names of their environment variables."""

import pytest
from pydantic import Field, ValidationError, model_validator
from pydantic_settings import BaseSettings

from beckon_runtime.settings import setting_problems


class _Settings(BaseSettings):
    reply_port: int = 0
    log_level: int = Field(0, validation_alias="BECKON_LOG_LEVEL")
    own_port: int = Field(0, validation_alias="PORT")
    openai_base_url: int = 0
    both: bool = False

    @model_validator(mode="after")
    def _check_both(self) -> "_Settings":
        if self.both:
            raise ValueError("must not be set with the other")
        return self


def problems(**values: object) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        _Settings.model_validate(values)
    return setting_problems("BECKON_SHIM_", caught.value)


@pytest.mark.parametrize(
    ("field", "variable"),
    [
        ("reply_port", "BECKON_SHIM_REPLY_PORT"),
        ("BECKON_LOG_LEVEL", "BECKON_LOG_LEVEL"),
        ("PORT", "PORT"),
        ("openai_base_url", "OPENAI_BASE_URL"),
    ],
)
def test_a_problem_has_the_variable_of_its_field(field: str, variable: str) -> None:
    (line,) = problems(**{field: "secret"})

    assert line.startswith(f"{variable}: Input should be a valid integer")
    assert "secret" not in line


def test_a_problem_of_all_settings_has_no_variable() -> None:
    assert problems(both=True) == ["must not be set with the other"]


def test_each_wrong_setting_has_a_line() -> None:
    assert [line.partition(":")[0] for line in problems(reply_port="x", PORT="y")] == [
        "BECKON_SHIM_REPLY_PORT",
        "PORT",
    ]
