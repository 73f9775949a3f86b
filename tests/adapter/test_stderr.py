"""What a command writes on its standard error: in the log, without its secrets, and not without end."""

import logging

import pytest

from beckon_adapter.mcp.command_server import log_stderr

SECRET = "hunter2hunter2"


async def said(caplog: pytest.LogCaptureFixture, text: str) -> list[str]:
    caplog.set_level(logging.INFO, "beckon_adapter.mcp.command_server")
    async with log_stderr("files", [SECRET]) as file:
        file.write(text)
    return [record.getMessage() for record in caplog.records]


async def test_each_line_is_logged_under_the_servers_name(caplog: pytest.LogCaptureFixture) -> None:
    assert await said(caplog, "one\n\ntwo\nthree") == ["files: one", "files: two", "files: three"]


@pytest.mark.parametrize("before", range(1980, 2002, 3))
async def test_a_secret_that_a_long_line_is_cut_in_is_not_reported_in_part(
    caplog: pytest.LogCaptureFixture, before: int
) -> None:
    (line,) = await said(caplog, "x" * before + SECRET + "\n")

    assert "hun" not in line
    assert len(line) <= len("files: ") + 2000


async def test_lines_beyond_so_many_in_a_minute_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    lines = await said(caplog, "noise\n" * 250)

    assert lines[:200] == ["files: noise"] * 200
    assert lines[200:] == ["files: 50 more lines were left out of the log"]
