import json

from hypothesis import given
from hypothesis import strategies as st

from beckon_contract.problem import Problem
from beckon_tools.replies import PROBLEM_LIMIT, bounded_body


@given(st.text(max_size=3000), st.sampled_from(["invalid-arguments", "tool-crashed"]))
def test_a_problem_is_always_json_within_the_limit(detail: str, slug: str) -> None:
    detail = detail.encode(errors="ignore").decode()
    body = bounded_body(Problem(400, slug, "Invalid arguments", detail))
    assert len(body) <= PROBLEM_LIMIT
    told = json.loads(body)
    assert told["status"] == 400
    assert told["detail"] == detail or (
        told["detail"].endswith("…") and detail.startswith(told["detail"][:-1])
    )


@given(st.integers(0, 400))
def test_a_problem_that_fits_is_not_cut(length: int) -> None:
    problem = Problem(400, "a", "b", "x" * length)
    assert (bounded_body(problem) == problem.body()) == (len(problem.body()) <= PROBLEM_LIMIT)
