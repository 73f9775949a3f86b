"""The lint for names, on small checkouts: each rule and the exit codes."""

from pathlib import Path

import pytest

from lint.names import main
from lint.rules import split_words
from tests.lint.tree import LONG, write_room

Captured = pytest.CaptureFixture[str]

WHERE_NAMES_ARE_GIVEN = {
    "function": "def reply_told(): ...",
    "async function": "async def reply_told(): ...",
    "class": "class ReplyTold: ...",
    "argument": "def reply(reply_told): ...",
    "keyword-only argument": "def reply(*, reply_told=1): ...",
    "argument of a lambda": "reply = lambda reply_told: 1",
    "variable": "reply_told = 1",
    "annotated field": "class Reply:\n    reply_told: int",
    "attribute": "def start(self):\n    self.reply_told = 1",
    "loop variable": "for reply_told in (): ...",
    "comprehension": "replies = [1 for reply_told in ()]",
    "walrus": "if reply_told := 1: ...",
    "alias of an import": "from json import loads as reply_told",
    "error": "try: ...\nexcept ValueError as reply_told: ...",
    "with": "with open('f') as reply_told: ...",
    "match": "match 1:\n    case reply_told: ...",
    "starred match": "match []:\n    case [*reply_told]: ...",
    "rest of a match": "match {}:\n    case {**reply_told}: ...",
}


@pytest.mark.parametrize("source", WHERE_NAMES_ARE_GIVEN.values(), ids=WHERE_NAMES_ARE_GIVEN)
def test_a_banned_word_is_refused_wherever_a_name_is_given(
    source: str, tmp_path: Path, capsys: Captured
) -> None:
    write_room(tmp_path, {"replies.py": f"import json\n\n{source}\n"})

    assert main([str(tmp_path)]) == 1

    (found, total) = capsys.readouterr().out.splitlines()
    line = 3 + source[: source.lower().replace("_", "").find("replytold")].count("\n")
    assert found.startswith(f"shop/beckon_shop/replies.py:{line}: ")
    assert "'told' says too little here; write the verb: `describe`" in found
    assert found.endswith("see docs/glossary.md")
    assert total.startswith("Names: 1 to change; ")


def test_modules_and_packages_are_names_too(tmp_path: Path, capsys: Captured) -> None:
    write_room(tmp_path, {"log_lines.py": "", "ways/__init__.py": ""})

    assert main([str(tmp_path)]) == 1

    out = capsys.readouterr().out
    assert "shop/beckon_shop/log_lines.py:1: log_lines: 'lines'" in out
    assert "shop/beckon_shop/ways/__init__.py:1: ways: 'ways'" in out


def test_a_variable_may_hold_the_lines_of_a_text_and_a_class_may_not(
    tmp_path: Path, capsys: Captured
) -> None:
    write_room(tmp_path, {"logs.py": "lines = 'a b'.splitlines()\n\n\nclass LogLines: ...\n"})

    assert main([str(tmp_path)]) == 1

    assert "logs.py:4: LogLines" in capsys.readouterr().out


def test_a_word_counts_alone_not_as_a_part_of_another(tmp_path: Path) -> None:
    write_room(tmp_path, {"gateways.py": "gateway = always = unasked = 1\n"})

    assert main([str(tmp_path)]) == 0


def test_the_use_of_a_name_from_elsewhere_is_no_finding(tmp_path: Path) -> None:
    write_room(tmp_path, {"files.py": "import io\n\nplace = io.BytesIO().tell()\nio.open(told=1)\n"})

    assert main([str(tmp_path)]) == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("reply_told", ["reply", "told"]),
        ("_Told", ["told"]),
        ("WhatIsTold", ["what", "is", "told"]),
        ("HTTPWay", ["http", "way"]),
        ("TOLD_AT", ["told", "at"]),
        ("told2", ["told"]),
        ("__told__", ["told"]),
    ],
)
def test_words_are_parted_at_underscores_and_camel_case(name: str, words: list[str]) -> None:
    assert split_words(name) == words


def test_a_second_class_of_a_name_in_a_room_is_refused_in_both_modules(
    tmp_path: Path, capsys: Captured
) -> None:
    write_room(tmp_path, {"calls.py": "class Outcome: ...\n", "runs.py": "\nclass _Outcome: ...\n"})

    assert main([str(tmp_path)]) == 1

    first, second, _ = capsys.readouterr().out.splitlines()
    assert first.startswith(
        "shop/beckon_shop/calls.py:1: Outcome: a class of this name is in shop/beckon_shop/runs.py"
    )
    assert second.startswith("shop/beckon_shop/runs.py:2: Outcome: a class of this name is in")


def test_two_rooms_may_each_have_a_class_of_the_same_name(tmp_path: Path) -> None:
    write_room(tmp_path, {"calls.py": "class Outcome: ...\n"})
    write_room(tmp_path, {"calls.py": "class Outcome: ...\n"}, room="bank")

    assert main([str(tmp_path)]) == 0


@pytest.mark.parametrize(
    "source",
    ["from beckon_shop.price import vat", "from beckon_shop import price", "import beckon_shop.price"],
)
def test_a_short_module_with_one_importer_is_refused(source: str, tmp_path: Path, capsys: Captured) -> None:
    write_room(tmp_path, {"price.py": "vat = 19\n", "orders.py": f"{source}\n"})

    assert main([str(tmp_path)]) == 1

    (found, _) = capsys.readouterr().out.splitlines()
    assert found.startswith(
        "shop/beckon_shop/price.py:1: price: 1 lines and one importer, beckon_shop.orders: merge"
    )


def test_a_module_of_60_lines_or_of_two_importers_stands_alone(tmp_path: Path) -> None:
    price = "from beckon_shop.price import VALUE\n"
    rate = "from beckon_shop.rate import VALUE\n"
    write_room(tmp_path, {"price.py": LONG, "rate.py": "VALUE = 1\n", "a.py": price + rate, "b.py": rate})

    assert main([str(tmp_path)]) == 0


def test_programs_and_the_faces_of_packages_may_be_short(tmp_path: Path) -> None:
    sources = {"price/__init__.py": "VALUE = 1\n", "__main__.py": "from beckon_shop.price import VALUE\n"}
    write_room(tmp_path, sources)

    assert main([str(tmp_path)]) == 0


@pytest.mark.parametrize("folder", ["bench", "tests/shop"])
def test_a_banned_word_is_refused_outside_of_the_product_too(
    folder: str, tmp_path: Path, capsys: Captured
) -> None:
    write_room(tmp_path, {"calls.py": LONG})
    path = tmp_path / folder / "test_calls.py"
    path.parent.mkdir(parents=True)
    path.write_text("def test_a_desk() -> None: ...\n\n\nclass Call: ...\n", encoding="utf-8")
    path.with_name("test_runs.py").write_text("class Call: ...\n", encoding="utf-8")

    assert main([str(tmp_path)]) == 1

    (found, total) = capsys.readouterr().out.splitlines()
    assert found.startswith(f"{folder}/test_calls.py:1: test_a_desk: 'desk' says too little here")
    assert total.startswith("Names: 1 to change; ")


def test_a_missing_room_and_broken_python_are_errors(tmp_path: Path, capsys: Captured) -> None:
    assert main([str(tmp_path)]) == 2
    assert "name the root of a checkout" in capsys.readouterr().err

    write_room(tmp_path, {"calls.py": "x = 1\ndef :\n"})
    assert main([str(tmp_path)]) == 2
    assert "shop/beckon_shop/calls.py:2: not valid Python" in capsys.readouterr().err


def test_help_teaches_the_rules(capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])

    assert ended.value.code == 0
    out = capsys.readouterr().out
    for taught in ("word ", "namesake ", "fragment ", "docs/glossary.md", "Exit code 0"):
        assert taught in out
