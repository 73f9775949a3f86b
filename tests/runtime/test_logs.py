import json
import logging
import logging.config
import shlex
from contextvars import copy_context

import pytest

from beckon_runtime.logs import LogLevel, extend_log_context, log_config, log_context, point_to_log


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
def test_the_level_is_that_of_beckons_own_loggers(level: LogLevel) -> None:
    logging.config.dictConfig(log_config("agent", readable=False, level=level))

    assert logging.getLogger("beckon_agent.run.loop").getEffectiveLevel() == getattr(logging, level.upper())


def test_libraries_never_log_what_they_send_and_receive() -> None:
    logging.config.dictConfig(log_config("agent", readable=False, level="debug"))

    for library in ("kubernetes.aio.client.rest", "httpcore2.http11", "openai", "aiohttp.access"):
        assert not logging.getLogger(library).isEnabledFor(logging.DEBUG)


def test_a_line_of_json_names_time_level_logger_message_and_service(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logging.config.dictConfig(log_config("agent", readable=False))

    logging.getLogger("beckon_agent").warning("a call took %d s", 3)

    line = json.loads(capsys.readouterr().err)
    assert line.pop("time")
    assert line == {
        "level": "WARNING",
        "logger": "beckon_agent",
        "message": "a call took 3 s",
        "service": "agent",
    }


def test_a_line_of_json_names_what_it_belongs_to_when_it_is_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    current = {"trace_id": "1", "request_id": "a"}
    logging.config.dictConfig(log_config("agent", readable=False, fields=lambda: current))
    logger = logging.getLogger("beckon_agent")

    logger.info("first")
    current.clear()
    logger.info("second")

    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert (first["trace_id"], first["request_id"]) == ("1", "a")
    assert not {"trace_id", "request_id"} & second.keys()


def test_a_line_of_json_says_what_is_worked_on_where_it_is_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logging.config.dictConfig(log_config("agent", readable=False))
    logger = logging.getLogger("beckon_agent")

    def work() -> None:
        extend_log_context(run_id="r")
        with log_context(tool="t"), log_context(event_id="e"):
            logger.info("inside")
        logger.info("after")

    copy_context().run(work)
    logger.info("elsewhere")

    inside, after, elsewhere = map(json.loads, capsys.readouterr().err.splitlines())
    assert (inside["run_id"], inside["tool"], inside["event_id"]) == ("r", "t", "e")
    assert after["run_id"] == "r"
    assert not {"tool", "event_id"} & after.keys()
    assert not {"run_id", "tool", "event_id"} & elsewhere.keys()


def test_the_command_that_shows_the_lines_of_a_failure_can_be_pasted() -> None:
    said = point_to_log("agent", "the Agent team-a/helper")

    command = said.partition(": ")[2].partition(" (or")[0]
    assert shlex.split(command.partition("|")[2]) == ["grep", "the Agent team-a/helper"]
    assert shlex.split(command)[:4] == ["kubectl", "logs", "-n", "beckon"]
    assert "app.kubernetes.io/component=agent" in command


def test_a_line_for_a_terminal_shows_control_characters_that_it_quotes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logging.config.dictConfig(log_config("agent", readable=True))
    logging.getLogger("beckon_agent").warning("the tool answers %s", "\x1b]0;owned\x07")

    assert "the tool answers ␛]0;owned␇" in capsys.readouterr().err
