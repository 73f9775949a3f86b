"""Settings are told by the names of their environment variables."""

import pytest

from beckon_runtime.settings import setting_problem


@pytest.mark.parametrize(
    ("location", "line"),
    [
        (("port",), "BECKON_SHIM_PORT: must be a number"),
        (("BECKON_LOG_LEVEL",), "BECKON_LOG_LEVEL: must be a number"),
        (("PORT",), "PORT: must be a number"),
        (("openai_base_url",), "OPENAI_BASE_URL: must be a number"),
        ((), "must be a number"),
    ],
)
def test_a_field_is_told_by_its_variable(location: tuple[str, ...], line: str) -> None:
    assert setting_problem("BECKON_SHIM_", location, "Value error, must be a number") == line
