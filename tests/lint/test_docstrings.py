"""The lint for docstrings, on small checkouts: a name in backticks is a name of the code."""

from pathlib import Path

import pytest

from lint.docstrings import find_absent_names
from lint.names import main
from lint.source import read_modules
from tests.lint.tree import write_room

DOCSTRINGS = {
    "function": 'def send():\n    """Send it; see `{}`."""\n',
    "asynchronous function": 'async def send():\n    """Send it; see `{}`."""\n',
    "class": 'class Sender:\n    """Sends by `{}`."""\n',
    "method": 'class Sender:\n    def send(self):\n        """Send it; see `{}`."""\n',
    "module": '"""Sends it; see `{}`."""\n',
    "variable": 'LIMIT = 1\n"""At most so many; see `{}`."""\n',
}
# What a module has, by the kind of thing that has the name `post`.
GIVEN = {
    "function": "def post(): ...",
    "class": "class post: ...",
    "parameter": "def other(post): ...",
    "variable": "post = 1",
    "attribute": "def other(it): it.post",
    "keyword": "dict(post=1)",
    "import": "from json import loads as post",
    "string": "HEADER = 'x-post'",
    "bytes": "HEADER = b'x-post'",
}


def absent(root: Path, **modules: str) -> list[str]:
    """Return the names that the rule finds in a room with these modules."""
    write_room(root, {f"{name}.py": text for name, text in modules.items()})
    return [finding.name for finding in find_absent_names(read_modules(root))]


@pytest.mark.parametrize("text", DOCSTRINGS.values(), ids=DOCSTRINGS)
def test_a_name_that_the_code_does_not_have_is_found_in_each_docstring(text: str, tmp_path: Path) -> None:
    assert absent(tmp_path, posts=text.format("post")) == ["post"]


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_a_name_that_its_module_has_in_any_form_is_none(given: str, tmp_path: Path) -> None:
    assert absent(tmp_path, posts=f"{DOCSTRINGS['function'].format('post')}\n\n{given}\n") == []


@pytest.mark.parametrize("name", ["post()", "post(url, body)", "Client.post", "client.post(url)"])
def test_calls_and_members_are_names_too(name: str, tmp_path: Path) -> None:
    assert absent(tmp_path, posts=DOCSTRINGS["function"].format(name)) == ["post"]


@pytest.mark.parametrize(
    "name", ["None", "repr", "true", "KEY", "POST /v1/models", "a post", "posts", "beckon_shop"]
)
def test_other_words_in_backticks_are_left_alone(name: str, tmp_path: Path) -> None:
    assert absent(tmp_path, posts=DOCSTRINGS["function"].format(name)) == []


def test_a_name_may_be_that_of_a_module_next_to_it_and_of_no_other(tmp_path: Path) -> None:
    assert absent(
        tmp_path,
        client="def post(): ...\n",
        above=f"import beckon_shop.client\n\n\n{DOCSTRINGS['function'].format('post')}",
        below=DOCSTRINGS["function"].format("leave"),
        user="import beckon_shop.below\n\n\ndef leave(): ...\n",
        far=DOCSTRINGS["function"].format("post"),
    ) == ["post"]


def test_a_class_and_a_member_of_a_module_may_be_anywhere(tmp_path: Path) -> None:
    text = DOCSTRINGS["function"].format("Refused` and `client.post")

    assert absent(tmp_path, client="def post(): ...\n\n\nclass Refused: ...\n", far=text) == []


def test_another_docstring_with_the_name_does_not_allow_it(tmp_path: Path) -> None:
    twice = DOCSTRINGS["module"].format("post") + DOCSTRINGS["class"].format("post")

    assert absent(tmp_path, posts=twice) == ["post", "post"]


def test_the_lint_reports_the_line_and_the_cure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_room(tmp_path, {"posts.py": "\n" + DOCSTRINGS["class"].format("post")})

    assert main([str(tmp_path)]) == 1

    (found, _total) = capsys.readouterr().out.splitlines()
    assert found.startswith("shop/beckon_shop/posts.py:3: post: the docstring names it")
    assert found.endswith("write the present one, or words without backticks")
