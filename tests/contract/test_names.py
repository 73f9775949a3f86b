import random
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from beckon_contract import names as names_module
from beckon_contract.names import MAX_LENGTH, RESERVED, Identity, assign_names, sanitise

ACCEPTED = re.compile(r"[a-zA-Z][a-zA-Z0-9_]{0,63}")

NAMESPACES = st.sampled_from(["default", "a", "ab", "b", "team-1"])
# A small alphabet makes collisions the rule; whole Unicode and long names come beside it.
NAMES = st.one_of(
    st.text("ab.-_1", min_size=1, max_size=4),
    st.text(min_size=1, max_size=12),
    st.text("ab", min_size=60, max_size=253),
    st.sampled_from(
        [*sorted(RESERVED), "find-tools", "find.tools", "天气", "9lives", "_", "a" * 64, "a" * 65]
    ),
)
SETS = st.dictionaries(st.builds(Identity, NAMESPACES, NAMES), NAMES, max_size=30)


def plainly(*identities: tuple[str, str]) -> dict[Identity, str]:
    """Return what identities want that have no annotation: their own name."""
    return {Identity(*identity): identity[1] for identity in identities}


def test_dots_dashes_and_spaces_become_underscores() -> None:
    assert sanitise("get.current-weather now") == "get_current_weather_now"


def test_a_name_without_a_letter_first_gets_one() -> None:
    assert sanitise("3d-print") == "tool_3d_print"
    assert sanitise("天气") == "tool___"
    assert sanitise("_a") == "tool__a"
    assert sanitise("") == "tool_"


def test_a_name_that_no_one_else_wants_is_as_it_is() -> None:
    names = assign_names(plainly(("default", "get.current.weather"), ("default", "track")))

    assert list(names.values()) == ["get_current_weather", "track"]


def test_when_two_want_one_name_both_get_a_hash_and_keep_the_beginning() -> None:
    names = assign_names(
        plainly(("default", "get.weather"), ("default", "get-weather"), ("default", "track"))
    )

    first, second, third = names.values()
    assert first.startswith("get_weather__")
    assert second.startswith("get_weather__")
    assert first != second
    assert third == "track"


def test_the_same_name_in_two_namespaces_is_two_tools() -> None:
    names = assign_names(plainly(("a", "track"), ("b", "track")))

    assert len(set(names.values())) == 2
    assert all(name.startswith("track__") for name in names.values())


def test_a_long_name_is_cut_and_hashed_over_its_whole_length() -> None:
    names = assign_names(plainly(("default", "a" * 252 + "b"), ("default", "a" * 252 + "c")))

    assert [len(name) for name in names.values()] == [MAX_LENGTH, MAX_LENGTH]
    assert len(set(names.values())) == 2


def test_a_name_of_64_characters_is_and_one_of_65_is_hashed() -> None:
    names = assign_names(plainly(("default", "a" * 64), ("default", "b" * 65)))

    assert names[Identity("default", "a" * 64)] == "a" * 64
    assert "__" in names[Identity("default", "b" * 65)]


def test_reserved_names_are_never_given() -> None:
    names = assign_names(plainly(*(("default", name) for name in RESERVED)))

    assert not RESERVED & set(names.values())


def test_names_are_the_same_after_a_restart() -> None:
    names = assign_names(plainly(("a", "track"), ("b", "track"), ("b", "x" * 100)))

    assert list(names.values()) == [
        "track__gpwp3475bk",
        "track__66rvbzg5cx",
        "x" * 52 + "__yrmsmt2up6",
    ]


@settings(max_examples=500, deadline=None)
@given(SETS)
@example({Identity("a", "b"): "x", Identity("ab", ""): "x", Identity("", "ab"): "x"})
def test_names_are_accepted_everywhere_and_lead_back_to_one_event_type(wanted: dict[Identity, str]) -> None:
    names = assign_names(wanted)

    assert set(names) == set(wanted)
    assert all(ACCEPTED.fullmatch(name) for name in names.values())
    assert len(set(names.values())) == len(wanted)
    assert not RESERVED & set(names.values())


@settings(max_examples=200, deadline=None)
@given(SETS, st.randoms(use_true_random=False))
def test_names_do_not_depend_on_the_order_of_arrival(
    wanted: dict[Identity, str], order: random.Random
) -> None:
    items = list(wanted.items())
    order.shuffle(items)

    assert assign_names(dict(items)) == assign_names(wanted)


@settings(max_examples=200, deadline=None)
@given(SETS)
def test_a_name_that_looks_like_a_hashed_one_never_meets_it(wanted: dict[Identity, str]) -> None:
    # Someone reads the names that were given and asks for exactly those.
    taken = assign_names(wanted)
    imitations = {Identity("evil", f"e{index}"): name for index, name in enumerate(taken.values())}

    names = assign_names({**wanted, **imitations})

    assert len(set(names.values())) == len(names)
    hashed = {identity: name for identity, name in taken.items() if name != sanitise(wanted[identity])}
    assert {identity: names[identity] for identity in hashed} == hashed


@settings(max_examples=200, deadline=None)
@given(SETS, st.builds(Identity, NAMESPACES, NAMES), NAMES)
def test_a_newcomer_renames_only_those_who_want_its_name(
    wanted: dict[Identity, str], newcomer: Identity, its_wish: str
) -> None:
    before = {identity: wish for identity, wish in wanted.items() if identity != newcomer}
    old, new = assign_names(before), assign_names({**before, newcomer: its_wish})

    renamed = {identity for identity in before if old[identity] != new[identity]}

    assert all(sanitise(before[identity]) == sanitise(its_wish) for identity in renamed)


def test_thousands_of_names_are_given_apart() -> None:
    wanted = plainly(*((f"team-{n % 7}", f"get.{n % 1000}.{'.-_'[n % 3]}thing") for n in range(6000)))

    names = assign_names(wanted)

    assert len(set(names.values())) == len(wanted)


def test_two_hashes_that_begin_alike_are_both_written_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    # A clash of 50 bits cannot be waited for, so short hashes have a single digit here.
    monkeypatch.setattr(names_module, "_SHORT", 1)
    monkeypatch.setattr(names_module, "_HASHED", re.compile(r"__([a-z2-7]|[a-z2-7]{52})\Z"))
    wanted = plainly(*((f"n{index}", "track") for index in range(100)))

    names = assign_names(wanted)

    assert len(set(names.values())) == 100
    assert {len(name) for name in names.values()} <= {len("track__x"), len("track__") + 52}
    assert all(ACCEPTED.fullmatch(name) for name in names.values())
