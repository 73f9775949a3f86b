"""The glossary: one row a word, places that exist, and the banned words of the lint."""

from lint.rules import BANNED
from tests.docs.blocks import ROOT, table

GLOSSARY = ROOT / "docs" / "glossary.md"


def test_each_word_has_one_row_in_order_and_one_sentence() -> None:
    rows = table(GLOSSARY, "word")
    words = [row[0] for row in rows]

    assert words == sorted(set(words), key=lambda word: (word.lower(), word.isupper(), word[0].isupper()))
    assert [row for row in rows if len(row) != 3 or row[1].count(". ") or not row[1].endswith(".")] == []
    assert len(words) > 60


def test_the_places_of_the_words_exist() -> None:
    places = [row[2].strip("`") for row in table(GLOSSARY, "word")]

    assert [place for place in places if not (ROOT / place).exists()] == []


def test_the_banned_words_are_those_of_the_lint() -> None:
    assert {row[0]: row[1] for row in table(GLOSSARY, "banned")} == BANNED
