import json
import re
from contextlib import suppress

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from beckon_contract import yamltext
from beckon_contract.yamltext import NotReadable, find_line, read_document, read_json, split_documents

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
)
# PyYAML writes 0E0 without quotes, since YAML 1.1 has no such number; Kubernetes reads one, and so do we.
NUMBER_OF_1_2 = re.compile(r"[-+]?[0-9.]+[eE][-+]?[0-9]+")
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=12).filter(
    lambda text: not NUMBER_OF_1_2.fullmatch(text)
)
DATA = st.recursive(
    SCALARS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2020-01-01", "2020-01-01"),
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
        ("1:30", "1:30"),
        ("1e3", 1000.0),
        ("+.5", 0.5),
        ("1_000", 1000),
        ("0x1F", 31),
        ("010", 8),
        ("-7", -7),
        ("0x_", "0x_"),
        ("1.2.3", "1.2.3"),
        ("-", [None]),
        ("on", True),
        ("No", False),
        ("y", "y"),
        ("~", None),
        ("'5'", "5"),
        ("! 5", "5"),
        ("!!str 5", "5"),
        ("!!int '5'", 5),
        ("!!timestamp 2020-01-01", "2020-01-01"),
        ("{on: 1, 5: a, 1.5: b}", {"true": 1, "5": "a", "1.5": "b"}),
    ],
)
def test_scalars_have_the_types_of_json_and_dates_stay_text(text: str, value: object) -> None:
    found = read_document(text)

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a: 1\nb: 2\na: 3", "line 3: the key 'a' is twice"),
        ("a: .nan", "cannot be written in JSON"),
        ("a: -.inf", "cannot be written in JSON"),
        ("a: 1e999", "too large"),
        ("a: " + "9" * 5000, "too large"),
        ("a: !python/object:os.system x", "has no meaning in a manifest"),
        ("a: !!binary aGVsbG8=", "has no meaning in a manifest"),
        ("a: !!set {x: }", "has no meaning in a manifest"),
        ("? [1]\n: 2", "a key must be a string"),
        ("~: 2", "a key must be a string"),
        ("a: &a [*a]", "alias *a"),
        ("a: *b", "alias *b"),
        ("<<: 5", "<< must name a mapping"),
        ("a: b: c", "line 1"),
        ("a: 1\n...\nb: 2", "line 3"),
        ("a: \x07", "control characters"),
        ('{"a": 1, "a": 2}', "is twice"),
    ],
)
def test_what_kubernetes_could_not_take_is_refused_with_its_place(text: str, part: str) -> None:
    with pytest.raises(NotReadable) as refusal:
        read_document(text)

    assert part in str(refusal.value)


def test_anchors_and_merge_keys_are_opened_and_own_keys_win() -> None:
    text = "base: &base {a: 1, b: 2}\nlist: [*base]\nown: {<<: *base, b: 3}\ntwo: {<<: [{a: 5}, *base]}"

    assert read_document(text) == {
        "base": {"a": 1, "b": 2},
        "list": [{"a": 1, "b": 2}],
        "own": {"a": 1, "b": 3},
        "two": {"a": 5, "b": 2},
    }


def test_aliases_that_multiply_without_end_are_refused() -> None:
    lines = ["x0: &x0 [1, 2, 3, 4, 5, 6, 7, 8, 9]"]
    lines += [f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]" for n in range(1, 12)]

    with pytest.raises(NotReadable, match="aliases stand for more"):
        read_document("\n".join(lines))


def test_merge_keys_that_multiply_without_end_are_refused() -> None:
    lines = ["x0: &x0 {a: 1, b: 2, c: 3}"]
    lines += [f"x{n}: &x{n} {{<<: [{', '.join([f'*x{n - 1}'] * 9)}]}}" for n in range(1, 12)]

    with pytest.raises(NotReadable, match="aliases stand for more"):
        read_document("\n".join(lines))


@pytest.mark.parametrize("start", ["[", "- ", "{a: ", "? ", "&a ["])
@pytest.mark.parametrize("depth", [150, 100_000])
def test_nesting_that_would_exhaust_the_stack_is_refused(start: str, depth: int) -> None:
    with pytest.raises(NotReadable):
        read_document(start * depth)


@pytest.mark.parametrize("text", ["[" * 150 + "]" * 150, '{"a":' * 150 + "1" + "}" * 150, "[" * 100_000])
def test_deep_json_is_refused(text: str) -> None:
    with pytest.raises(NotReadable):
        read_json(text)


@pytest.mark.parametrize(
    "text", ["NaN", '"\\ud800"', "1e999", "{'a': 1}", "", "[1] x", '{"a": {"b": 1, "b": 2}}']
)
def test_json_that_only_some_readers_take_is_refused(text: str) -> None:
    with pytest.raises(NotReadable):
        read_json(text)


def test_json_with_escaped_emoji_is_read_as_the_character() -> None:
    assert read_document('{"a": "\\ud83d\\ude00"}') == {"a": "😀"}


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(NotReadable):
        read_document("a: \ud800")


def test_documents_are_split_at_their_separators_with_their_lines() -> None:
    text = "%YAML 1.1\n---\na: 1\n--- # next\nb: |\n  ---\n  text\n---\r\n# nothing\n---x: 1\n"

    assert [(line, read_document(document)) for line, document in split_documents(text)] == [
        (2, {"a": 1}),
        (4, {"b": "---\ntext\n"}),
        (8, {"---x": 1}),
    ]


@settings(deadline=None)
@given(DATA)
def test_what_json_and_yaml_write_reads_back_as_it_was(data: object) -> None:
    assert read_document(json.dumps({"data": data})) == {"data": data}
    assert read_json(json.dumps(data)) == data
    assert read_document(yaml.safe_dump(data, allow_unicode=True)) == data


@settings(deadline=None)
@given(st.text(alphabet="ab:-[]{}&*<>|!'\" \n#%?,.01~", max_size=60))
def test_no_text_makes_the_reader_raise_anything_else(text: str) -> None:
    for line, document in split_documents(text):
        with suppress(NotReadable):
            json.dumps(read_document(document, line), allow_nan=False)


def test_a_large_document_stays_within_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yamltext, "MAX_NODES", 10)

    with pytest.raises(NotReadable, match="more than 10 values; split"):
        read_document("[1,2,3,4,5,6,7,8,9,10,11]\n# so that it is read as YAML")


FIELDS = """\
kind: Trigger
metadata:
  annotations:
    beckon.dev/http: "{}"
spec:
  filters:
  - exact: {type: a}
  - any:
    - suffix:
        type: b
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("", 11),
        ("kind", 11),
        ("metadata.annotations[beckon.dev/http]", 14),
        ("metadata.annotations[beckon.dev/http].url", 14),
        ("metadata.labels", 12),
        ("spec.filters[0].exact.type", 17),
        ("spec.filters[1].any[0].suffix.type", 20),
        ("spec.filters[7].any", 16),
        ("status", 11),
    ],
)
def test_the_line_of_a_field_is_that_of_its_last_part_which_is_there(path: str, line: int) -> None:
    assert find_line(FIELDS, path, first_line=11) == line


@pytest.mark.parametrize("text", ["a: [", "[" * 200, "a: 1\na: 2"])
def test_a_document_that_cannot_be_read_has_no_lines(text: str) -> None:
    with pytest.raises(NotReadable):
        find_line(text, "a")
