import base64
import json
from typing import Any

import jsonpatch
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from beckon_contract.catalogue.annotations import LAST_APPLIED, PARAMETERS, SCHEMA_DATA
from beckon_operator.webhook.reviews import (
    MAX_ANNOTATIONS,
    MAX_WARNING,
    Malformed,
    Outcome,
    ReviewAnswer,
    answer_review,
)
from tests.operator.webhook.asking import APPLIED, COPY, TEXT, applied, event_type, request
from tests.shared_data import shared_data

BLOG = shared_data("examples", "blog-eventtype.yaml")


def ask(new: dict[str, Any] | None, old: dict[str, Any] | None = None, **changes: Any) -> ReviewAnswer:
    return answer_review(json.dumps(request(new, old, **changes)).encode())


def after(new: dict[str, Any], found: ReviewAnswer) -> dict[str, Any]:
    """Return the object as the API server makes it of an answer."""
    response = found.to_review()["response"]
    assert response["allowed"] is True
    if "patch" not in response:
        return new
    assert response["patchType"] == "JSONPatch"
    patched: dict[str, Any] = jsonpatch.apply_patch(new, json.loads(base64.b64decode(response["patch"])))
    return patched


def annotations(new: dict[str, Any], found: ReviewAnswer) -> dict[str, str]:
    written: dict[str, str] = after(new, found)["metadata"].get("annotations", {})
    return written


def test_the_names_are_those_of_the_contract() -> None:
    assert (COPY, APPLIED) == (SCHEMA_DATA, LAST_APPLIED)


def test_schema_data_is_copied_word_for_word() -> None:
    new = event_type(TEXT)

    found = ask(new)

    assert found.outcome is Outcome.COPIED
    assert annotations(new, found) == {COPY: TEXT}
    assert found.warnings == ()


def test_nothing_but_the_annotation_changes() -> None:
    new = event_type(TEXT, {"owner": "team-a", PARAMETERS: "{}"})

    changed = after(new, ask(new))

    assert changed == event_type(TEXT, {"owner": "team-a", PARAMETERS: "{}", COPY: TEXT})


@pytest.mark.parametrize("nothing", [None, {}])
def test_an_object_without_annotations_gets_some(nothing: dict[str, str] | None) -> None:
    new = event_type(TEXT)
    new["metadata"]["annotations"] = nothing

    assert annotations(new, ask(new)) == {COPY: TEXT}


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_both_versions_that_have_the_field_are_served(version: str) -> None:
    assert ask(event_type(TEXT, version=version)).outcome is Outcome.COPIED


def test_an_event_type_whose_name_is_still_to_be_made_is_served() -> None:
    new = event_type(TEXT)
    new["metadata"] = {"generateName": "weather-"}

    assert annotations(new, ask(new)) == {COPY: TEXT}


def test_asking_again_changes_nothing() -> None:
    new = event_type(TEXT)
    once = after(new, ask(new))

    again = ask(once)

    assert again.outcome is Outcome.PRESENT
    assert "patch" not in again.to_review()["response"]


def test_a_changed_text_replaces_the_copy() -> None:
    new = event_type('{"unit": {}}', {COPY: TEXT})

    assert annotations(new, ask(new, event_type(None, {COPY: TEXT}))) == {COPY: '{"unit": {}}'}


def test_the_text_wins_over_a_copy_written_by_hand() -> None:
    new = event_type(TEXT, {COPY: "{}"})

    assert annotations(new, ask(new)) == {COPY: TEXT}


@pytest.mark.parametrize("blank", [None, "", " \n"])
def test_an_update_without_the_text_keeps_the_copy(blank: str | None) -> None:
    new = event_type(blank, {COPY: TEXT})

    found = ask(new, event_type(None, {COPY: TEXT}))

    assert found.outcome is Outcome.NOTHING
    assert annotations(new, found) == {COPY: TEXT}


def test_a_label_on_an_applied_event_type_keeps_the_copy() -> None:
    old = event_type(None, {COPY: TEXT, APPLIED: applied(TEXT)})
    new = event_type(None, {COPY: TEXT, APPLIED: applied(TEXT)}, labels={"team": "a"})

    assert annotations(new, ask(new, old))[COPY] == TEXT


def test_a_text_taken_out_of_the_applied_manifest_takes_its_copy_along() -> None:
    old = event_type(None, {COPY: TEXT, APPLIED: applied(TEXT)})
    new = event_type(None, {COPY: TEXT, APPLIED: applied(None)})

    found = ask(new, old)

    assert found.outcome is Outcome.REMOVED
    assert annotations(new, found) == {APPLIED: applied(None)}


@pytest.mark.parametrize(
    ("before", "now"),
    [
        pytest.param({COPY: "{}", APPLIED: applied(TEXT)}, {APPLIED: applied(None)}, id="by-hand"),
        pytest.param(
            {COPY: TEXT, APPLIED: applied(TEXT)}, {APPLIED: applied(None, **{COPY: TEXT})}, id="moved"
        ),
        pytest.param({COPY: TEXT}, {APPLIED: applied(None)}, id="never-applied"),
        pytest.param({COPY: TEXT, APPLIED: applied(TEXT)}, {}, id="no-longer-applied"),
        pytest.param({COPY: TEXT, APPLIED: applied(TEXT)}, {APPLIED: "{"}, id="broken"),
        pytest.param({COPY: TEXT, APPLIED: "[]"}, {APPLIED: applied(None)}, id="no-object"),
    ],
)
def test_no_other_copy_is_ever_removed(before: dict[str, str], now: dict[str, str]) -> None:
    new = event_type(None, {**now, COPY: before[COPY]})

    found = ask(new, event_type(None, before))

    assert found.outcome is Outcome.NOTHING
    assert annotations(new, found)[COPY] == before[COPY]


@pytest.mark.parametrize(
    "changes",
    [
        {"operation": "DELETE", "object": None},
        {"operation": "CONNECT"},
        {"subResource": "status"},
        {"resource": {"group": "eventing.knative.dev", "version": "v1beta3", "resource": "eventtypes"}},
        {"resource": {"group": "eventing.knative.dev", "version": "v1", "resource": "triggers"}},
        {"resource": {"group": "example.com", "version": "v1beta2", "resource": "eventtypes"}},
    ],
)
def test_what_is_not_ours_is_allowed_untouched(changes: dict[str, Any]) -> None:
    found = ask(event_type(TEXT), **changes)

    assert found.to_review()["response"] == {"uid": found.uid, "allowed": True}
    assert found.outcome is Outcome.NOTHING


def test_the_answer_carries_the_uid_and_the_version_of_the_review() -> None:
    document = ask(event_type(TEXT)).to_review()

    assert document["apiVersion"] == "admission.k8s.io/v1"
    assert document["kind"] == "AdmissionReview"
    assert document["response"]["uid"] == request(None)["request"]["uid"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{city: string}", "NotJson"),
        ('["city"]', "NotAnObject"),
        ('{"city": {"type": "place"}}', "UnknownType"),
        ("<xs:schema/>", "NotJson"),
    ],
)
def test_a_text_that_makes_no_parameters_is_stored_with_a_warning(text: str, reason: str) -> None:
    new = event_type(text)

    found = ask(new)

    assert annotations(new, found) == {COPY: text}
    assert len(found.warnings) == 1
    assert reason in found.warnings[0]
    assert "spec.schemaData" in found.warnings[0]


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(event_type("<xs:schema/>", description=None), id="no-tool"),
        pytest.param(event_type("<xs:schema/>", labels={"beckon.dev/tool": "false"}), id="opted-out"),
        pytest.param(event_type("<xs:schema/>", labels={"beckon.dev/tool": "perhaps"}), id="bad-label"),
        pytest.param(event_type("<xs:schema/>", {PARAMETERS: "{}"}), id="parameters-elsewhere"),
        pytest.param(event_type("<xs:schema/>", type=None), id="invalid"),
    ],
)
def test_no_one_is_warned_of_a_schema_that_no_tool_uses(new: dict[str, Any]) -> None:
    found = ask(new)

    assert found.warnings == ()
    assert annotations(new, found)[COPY] == "<xs:schema/>"


def test_a_text_that_just_fits_is_stored() -> None:
    text = " " * (MAX_ANNOTATIONS - len(COPY) - 2) + "{}"
    new = event_type(text)

    assert annotations(new, ask(new)) == {COPY: text}


@pytest.mark.parametrize("grow", [{"owner": "x"}, {}])
def test_a_text_that_does_not_fit_is_allowed_with_a_warning(grow: dict[str, str]) -> None:
    text = "ü" * (MAX_ANNOTATIONS // 2)
    new = event_type(text, grow)

    found = ask(new)

    assert found.outcome is Outcome.TOO_LARGE
    assert annotations(new, found) == grow
    assert str(MAX_ANNOTATIONS) in found.warnings[0]


def test_an_older_copy_does_not_stand_for_a_text_that_does_not_fit() -> None:
    new = event_type("x" * MAX_ANNOTATIONS, {"owner": "a", COPY: TEXT})

    found = ask(new, event_type(TEXT, {"owner": "a", COPY: TEXT}))

    assert annotations(new, found) == {"owner": "a"}


def test_warnings_are_short_and_on_one_line() -> None:
    warnings = ask(event_type('{"a\\r\\nb' + "\u2028" * 500 + '": "x"}')).to_review()["response"]["warnings"]

    assert len(warnings[0]) <= MAX_WARNING
    assert warnings[0].isprintable()


def test_the_event_type_of_the_blog_keeps_both_parameters() -> None:
    new = yaml.safe_load(BLOG.read_text())

    found = ask(new)

    assert json.loads(annotations(new, found)[COPY]).keys() == {"location", "unit"}
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (b"", "the body"),
        (b"{", "the body"),
        (b"[]", "the body"),
        (b"\xff", "the body"),
        (b"{}", "apiVersion"),
        (b"[" * 100_000, "the body"),
        (json.dumps({**request(None), "apiVersion": "admission.k8s.io/v1beta1"}).encode(), "apiVersion"),
        (json.dumps({**request(None), "request": None}).encode(), "request"),
        (json.dumps(request(None, uid="")).encode(), "request.uid"),
        (json.dumps(request(None, object=5)).encode(), "request.object"),
        (json.dumps(request({"apiVersion": "x/v1beta2"})).encode(), "request.object"),
        (json.dumps(request(event_type(TEXT), {"kind": 1})).encode(), "request.oldObject"),
    ],
)
def test_what_is_no_review_is_refused_by_the_place_that_is_wrong(body: bytes, where: str) -> None:
    with pytest.raises(Malformed, match=f"^{where}"):
        answer_review(body)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(metadata=_JSON, spec=_JSON, old=_JSON)
def test_no_object_makes_it_fail_otherwise(metadata: object, spec: object, old: object) -> None:
    new = {**event_type(TEXT), "metadata": metadata, "spec": spec}
    try:
        found = ask(new, event_type(TEXT), oldObject=old)
    except Malformed:
        return

    assert found.to_review()["response"]["allowed"] is True


@given(text=st.text(), others=st.dictionaries(st.text(min_size=1, max_size=5), st.text(max_size=20)))
def test_any_text_is_stored_beside_any_annotations(text: str, others: dict[str, str]) -> None:
    new = event_type(text, others)

    written = annotations(new, ask(new))

    assert written == ({**others, COPY: text} if text.strip() else others)
