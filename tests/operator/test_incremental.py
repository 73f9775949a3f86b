"""What is judged change by change must come out as if it had been judged at once."""

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from beckon_operator.conditions.verdicts import Verdict
from tests.operator.documents import (
    KSERVICE,
    Document,
    broker,
    event_type,
    ready,
    reply_trigger,
    service,
    trigger,
)
from tests.operator.judged import Judged

TYPES = ("get.weather", "get.wether")
ODD: list[Document] = [
    {"subscriber": {"ref": KSERVICE}},
    {"delivery": {"retry": 1}},
    {"broker": "other"},
    {"subscriber": {}},
]
NAMES = {"beckon.dev/tool-name": "same", "beckon.dev/parameters": "{}"}


def any_event_type(number: int) -> st.SearchStrategy[Document]:
    return st.builds(
        lambda wanted, notes, description: event_type(
            f"e{number}", {"type": wanted, "description": description}, annotations=notes
        ),
        st.sampled_from(TYPES),
        st.sampled_from([{}, {}, NAMES, {"beckon.dev/parameters": "{"}]),
        st.sampled_from(["It does.", "It does.", ""]),
    )


def any_trigger(number: int, namespace: str = "team") -> st.SearchStrategy[Document]:
    return st.builds(
        lambda wanted, spec, status: trigger(f"t{number}", wanted, spec, status, namespace=namespace),
        st.sampled_from([*TYPES, *TYPES, None]),
        st.sampled_from([{}, {}, {}, *ODD]),
        st.sampled_from([ready(), ready(), ready("False", "Gone")]),
    )


RARELY = st.sampled_from([False, False, False, True])
CHANGES = st.one_of(
    *(any_event_type(number) for number in range(2)),
    *(any_trigger(number) for number in range(2)),
    any_trigger(9, "shop"),
    st.builds(lambda status: broker(status=status), st.sampled_from([ready(), {}])),
    st.builds(lambda status: service(status=status), st.sampled_from([None, ready("Unknown")])),
    st.builds(lambda status: reply_trigger(status=status), st.sampled_from([ready(), ready("False")])),
)


def key(document: Document) -> tuple[str, str, str]:
    return document["kind"], document["metadata"]["namespace"], document["metadata"]["name"]


def outcome(judged: Judged) -> dict[str, Verdict]:
    return {found.event_type.name: replace(found) for found in judged.desired.verdicts()}


@settings(max_examples=200)
@given(st.lists(st.tuples(CHANGES, RARELY, RARELY), min_size=4, max_size=20))
def test_judging_every_change_comes_to_the_same_as_judging_once(
    changes: list[tuple[Any, bool, bool]],
) -> None:
    base = broker(resourceVersion="0"), reply_trigger(resourceVersion="0")
    judged = Judged(*base)
    there = {key(document): document for document in base}
    # Hypothesis repeats and reorders documents: each change is a later version than all before it.
    for version, (document, goes, waits) in enumerate(changes, start=1):
        uid = f"{document['metadata']['uid']}-{document['metadata']['namespace']}"
        # A new generation each: what an object was like before it was rewritten decides nothing.
        newer = {"resourceVersion": str(version), "generation": version}
        metadata = {**document["metadata"], **newer, "uid": uid}
        change = {**document, "metadata": metadata}
        if goes and key(change) in there:
            gone = there.pop(key(change))
            judged.judge.cluster.observe_deletion(judged.kind(gone), gone["metadata"])
            continue
        if goes:
            continue
        known = there.get(key(change)) if document["kind"] != "Broker" else None
        metadata["uid"] = known["metadata"]["uid"] if known else f"{uid}-{version}"
        there[key(change)] = change
        judged.judge.cluster.observe_object(judged.kind(change), change)
        if not waits:
            judged.judge.judge_all()
    judged.judge.judge_all()

    assert outcome(judged) == outcome(Judged(*there.values()))


def test_a_verdict_that_stays_the_same_is_not_made_anew() -> None:
    names = ("a", "b", "c")
    tools = [document for name in names for document in (event_type(name), trigger(f"t-{name}", name))]
    judged = Judged(broker(), reply_trigger(), *tools)
    before = {name: judged.verdict(name) for name in names}
    assert {found.ready.status for found in before.values()} == {"True"}

    judged.see(trigger("t-a", "a", status=ready("False", "Gone"), generation=2))

    assert judged.verdict("a").ready.status == "False"
    assert all(judged.verdict(name) is before[name] for name in ("b", "c"))


def test_a_trigger_for_another_type_can_be_the_explanation_of_a_missing_one() -> None:
    judged = Judged(broker(), event_type())
    assert judged.condition("Routed").reason == "NoTrigger"

    judged.see(trigger(wants="get.wether"))
    assert judged.condition("Routed").reason == "FilterMismatch"


def test_a_trigger_of_another_namespace_explains_as_long_as_it_is_there() -> None:
    elsewhere = trigger(namespace="shop")
    judged = Judged(broker(), event_type())
    judged.see(elsewhere)
    assert judged.condition("Routed").reason == "OtherNamespace"

    judged.lose(elsewhere)
    assert judged.condition("Routed").reason == "NoTrigger"


def test_names_are_unique_in_a_namespace_and_those_of_others_do_not_matter() -> None:
    judged = Judged(event_type("weather"), event_type("weather", namespace="shop", uid="other"))

    assert {found.spec["name"] for found in judged.desired.verdicts()} == {"weather"}


def test_what_cannot_be_judged_keeps_no_other_namespace_from_being_judged(caplog: Any) -> None:
    judged = Judged(event_type())
    broken = event_type(namespace="shop", uid="other")
    judged.judge.cluster.observe_object(judged.kind(broken), broken)
    # No manifest is known to do this; if one does, the rest goes on.
    judged.judge._namespaces["shop"] = None  # type: ignore[assignment]  # in place of a mistake of ours

    judged.see(event_type("next"))

    assert judged.verdict("next").spec["type"] == "next"
    assert "namespace shop could not be judged" in caplog.text
