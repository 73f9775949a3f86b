import json

from hypothesis import given
from hypothesis import strategies as st

from beckon_runtime.problem import DEAD_LETTER_LIMIT, MEDIA_TYPE, Problem, for_dead_letter


def test_a_problem_is_a_document_of_rfc_9457() -> None:
    problem = Problem(502, "undeliverable", "Undeliverable", "no one there", {"code": 404})
    assert MEDIA_TYPE == "application/problem+json"
    assert (
        json.loads(problem.body())
        == problem.document()
        == {
            "type": "https://beckon.dev/problems/undeliverable",
            "title": "Undeliverable",
            "status": 502,
            "detail": "no one there",
            "code": 404,
        }
    )


def test_a_member_cannot_hide_what_the_problem_is() -> None:
    document = Problem(400, "bad", "Bad", "because", {"status": 200, "extra": 1}).document()
    assert (document["status"], document["extra"]) == (400, 1)


@given(st.text(max_size=3000), st.sampled_from(["invalid-arguments", "tool-crashed"]))
def test_a_problem_for_a_dead_letter_is_always_json_within_the_limit(detail: str, slug: str) -> None:
    detail = detail.encode(errors="ignore").decode()
    body = for_dead_letter(Problem(400, slug, "Invalid arguments", detail, {"hint": detail})).body()
    assert len(body) <= DEAD_LETTER_LIMIT
    shown = json.loads(body)
    assert shown["status"] == 400
    assert shown["detail"] == detail or (
        shown["detail"].endswith("…") and detail.startswith(shown["detail"][:-1])
    )


@given(st.integers(0, 400))
def test_a_problem_that_fits_a_dead_letter_is_not_cut(length: int) -> None:
    problem = Problem(400, "a", "b", "x" * length)
    fits = len(problem.body()) <= DEAD_LETTER_LIMIT
    assert (for_dead_letter(problem) == problem) == fits
