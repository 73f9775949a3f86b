"""The condition RepliesArrive: the last probe of a Broker, on each of its Tools."""

import pytest

from beckon_operator.tools import read_seen, tool_document, wanted_tool
from tests.operator.documents import KSERVICE, NAMESPACE, broker, event_type, reply_trigger, service, trigger
from tests.operator.judged import Judged, words
from tests.operator.test_tools import NOW, stored

DEFAULT = (NAMESPACE, "default")


def working() -> Judged:
    return Judged(broker(), trigger(), reply_trigger(), event_type())


def probed(*results: bool) -> Judged:
    """Return a working cluster after probes with these results."""
    judged = working()
    for arrive in results:
        judged.judge.set_replies_arrive(DEFAULT, arrive)
        judged.judge.judge_all()
    return judged


def test_nothing_is_claimed_before_the_first_probe() -> None:
    judged = working()

    assert words(judged.condition("RepliesArrive")) == ("Unknown", "NotProbed")
    assert words(judged.condition("Ready")) == ("True", "Ready")


def test_a_probe_that_came_back_makes_it_true() -> None:
    judged = probed(True)

    assert words(judged.condition("RepliesArrive")) == ("True", "RepliesArrive")
    assert words(judged.condition("Ready")) == ("True", "Ready")


def test_a_lost_probe_is_the_reason_of_ready_and_the_tool_stays_offered() -> None:
    found = probed(True, False).condition("Ready")

    assert words(found) == ("True", "RepliesLost")
    assert (
        "Broker default took a probe, and no reply to it reached http://beckon-shim-replies" in found.message
    )
    assert "the filter of Trigger beckon-replies," in found.message


def test_replies_that_arrive_again_are_seen() -> None:
    assert words(probed(False, True).condition("RepliesArrive")) == ("True", "RepliesArrive")


def test_the_same_result_changes_nothing() -> None:
    judged = probed(True)
    before = judged.desired.wanted_tool(NAMESPACE, "get.weather")
    judged.judge.set_replies_arrive(DEFAULT, True)
    judged.judge.judge_all()

    assert judged.desired.wanted_tool(NAMESPACE, "get.weather") is before


def test_a_probe_counts_for_its_own_broker_alone() -> None:
    judged = working()
    judged.judge.set_replies_arrive((NAMESPACE, "other"), False)
    judged.judge.set_replies_arrive(("elsewhere", "default"), False)
    judged.judge.judge_all()

    assert words(judged.condition("RepliesArrive")) == ("Unknown", "NotProbed")


def test_a_direct_tool_needs_no_probe() -> None:
    notes = {"beckon.dev/dispatch": "direct", "beckon.dev/parameters": "{}"}
    judged = Judged(event_type(spec={"reference": KSERVICE}, annotations=notes), service())

    assert words(judged.condition("RepliesArrive")) == ("True", "Direct")


@pytest.mark.parametrize("arrive", [True, False])
def test_an_operator_that_starts_takes_the_result_from_the_tools(arrive: bool) -> None:
    written = stored(tool_document(wanted_tool(probed(arrive).verdict()), None, NOW))
    restarted = Judged(broker(), trigger(), reply_trigger(), written, event_type())

    assert restarted.condition("RepliesArrive").status == str(arrive)
    tool = wanted_tool(restarted.verdict())
    assert tool.digest == read_seen(written).digest  # nothing is written anew


def test_a_tool_that_was_not_probed_restores_nothing() -> None:
    direct = Judged(
        event_type(spec={"reference": KSERVICE}, annotations={"beckon.dev/dispatch": "direct"}), service()
    )
    written = stored(tool_document(wanted_tool(direct.verdict()), None, NOW))

    assert read_seen(written).probed is None
    assert read_seen(stored(tool_document(wanted_tool(working().verdict()), None, NOW))).probed is None
