import json

from beckon_contract.problem import MEDIA_TYPE, Problem


def test_a_problem_is_a_document_of_rfc_9457() -> None:
    problem = Problem(502, "undeliverable", "Undeliverable", "nobody there", {"code": 404})
    assert MEDIA_TYPE == "application/problem+json"
    assert (
        json.loads(problem.body())
        == problem.document()
        == {
            "type": "https://beckon.dev/problems/undeliverable",
            "title": "Undeliverable",
            "status": 502,
            "detail": "nobody there",
            "code": 404,
        }
    )


def test_a_member_cannot_hide_what_the_problem_is() -> None:
    document = Problem(400, "bad", "Bad", "because", {"status": 200, "extra": 1}).document()
    assert (document["status"], document["extra"]) == (400, 1)
