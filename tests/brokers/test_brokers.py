"""The suite of `beckon probe broker` on real Brokers: each row is as the documents say."""

from pathlib import Path

import pytest

from beckon_cli.probe.report import parse_report
from tests.brokers.brokers import EMBEDDED, JETSTREAM, RABBITMQ, Requirement, find_unmet_rows, probe


@pytest.mark.parametrize(
    "required", [EMBEDDED, JETSTREAM, RABBITMQ], ids=["embedded", "jetstream", "rabbitmq"]
)
def test_a_broker_treats_calls_as_the_documents_say(required: Requirement, tmp_path: Path) -> None:
    report = probe(required, tmp_path)

    assert find_unmet_rows(report, required.rows) == {}
    assert list(tmp_path.glob("*.json")) == []  # its Triggers are removed
    assert parse_report(report.document()) == report
