"""Where declarations stand from one request to the next."""

from hypothesis import given
from hypothesis import strategies as st

from beckon_agent.tools.select import place_names

names = st.lists(st.sampled_from([f"t{number}" for number in range(30)]), max_size=40)


def test_the_first_request_leaves_a_quarter_of_the_room_free() -> None:
    fitting = [f"t{number}" for number in range(20)]

    assert place_names([], [], fitting, 8) == fitting[:6]


def test_what_was_sent_keeps_its_place_and_what_comes_is_behind_it() -> None:
    assert place_names(["a", "b", "c"], ["x"], ["c", "b"], 8)[:4] == ["a", "b", "c", "x"]


def test_what_comes_takes_the_place_of_what_fits_least_where_there_is_no_room() -> None:
    assert place_names(["a", "b", "c", "d"], ["x"], ["a", "d"], 4) == ["a", "b", "x", "d"]


def test_what_fits_now_replaces_at_most_what_does_not_fit() -> None:
    sent = ["a1", "a2", "a3", "a4"]

    assert place_names(sent, [], ["b1", "b2", "b3", "a1"], 4) == ["a1", "a2", "b1", "b2"]


def test_a_smaller_room_drops_what_fits_least() -> None:
    assert place_names(["a", "b", "c", "d"], [], ["d", "b"], 2) == ["b", "d"]


def test_more_requests_than_places_are_met_in_their_order() -> None:
    assert place_names(["s"], ["a", "b", "c", "d"], ["e"], 3) == ["a", "b", "c"]


def test_in_the_middle_of_a_task_only_what_is_wanted_takes_a_place() -> None:
    sent = ["a1", "a2", "a3", "a4"]

    assert place_names(sent, [], ["b1", "b2", "b3", "a1"], 4, steady=True) == sent
    assert place_names(sent, ["x"], ["b1", "b2", "b3", "a1"], 4, steady=True) == ["a1", "a2", "a3", "x"]
    assert place_names(sent, [], ["b1", "b2", "b3", "a1"], 5, steady=True) == [*sent, "b1"]


@given(names, names, names, st.integers(0, 20))
def test_in_the_middle_of_a_task_nothing_goes_while_there_is_room(
    sent: list[str], wanted: list[str], fitting: list[str], room: int
) -> None:
    found = place_names(sent, wanted, fitting, room, steady=True)

    assert len(found) == len(set(found)) <= room
    assert set(list(dict.fromkeys(wanted))[:room]) <= set(found)
    if len({*sent, *wanted}) <= room:
        assert found[: len(set(sent))] == list(dict.fromkeys(sent))


@given(names, names, names, st.integers(0, 20))
def test_whatever_is_requested_there_is_room_and_everything_is_once(
    sent: list[str], wanted: list[str], fitting: list[str], room: int
) -> None:
    found = place_names(sent, wanted, fitting, room)

    assert len(found) <= room
    assert len(set(found)) == len(found)
    assert set(found) <= {*sent, *wanted, *fitting}
    assert set(list(dict.fromkeys(wanted))[:room]) <= set(found)


@given(names, names, names, st.integers(1, 20))
def test_what_was_sent_and_still_is_keeps_its_order(
    sent: list[str], wanted: list[str], fitting: list[str], room: int
) -> None:
    before = list(dict.fromkeys(sent))[:room]

    found = place_names(before, wanted, fitting, room)

    still_offered = [name for name in found if name in before]
    assert still_offered == [name for name in before if name in found]
    assert [found.index(name) for name in still_offered] == [before.index(name) for name in still_offered]


@given(names, names, st.integers(1, 20))
def test_asking_again_for_the_same_changes_nothing(wanted: list[str], fitting: list[str], room: int) -> None:
    first = place_names([], wanted, fitting, room)

    assert place_names(first, wanted, fitting, room) == first
