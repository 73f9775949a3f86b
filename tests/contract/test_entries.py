from typing import Any

from beckon_contract.catalogue.builder import Entry, EntryReader, Router, by_key
from beckon_contract.knative.routes import read_trigger, route_table
from beckon_contract.kubernetes_objects import Resource
from beckon_contract.names import Identity
from tests.contract.manifests import event_type, trigger

TYPES = ("a", "b")


def router(*triggers: Resource) -> Router:
    return Router(route_table(map(read_trigger, triggers)))


def routes(entries: list[Entry]) -> dict[str, Any]:
    return {
        entry.resource.name: entry.unrouted.reason if entry.unrouted else entry.tool and entry.tool.routes
        for entry in entries
    }


def test_a_tool_without_a_route_is_still_a_tool_with_the_reason_beside_it() -> None:
    (entry,) = EntryReader().read(by_key([event_type()]), router())

    assert entry.tool is not None
    assert (entry.tool.name, entry.tool.routes) == ("get_weather", ())
    assert entry.unrouted is not None
    assert entry.unrouted.reason == "NoTrigger"


def test_entries_come_in_the_order_of_their_keys() -> None:
    entries = EntryReader().read(by_key([event_type("b"), event_type("a")]), router())

    assert [entry.resource.name for entry in entries] == ["a", "b"]


def test_only_the_routes_of_changed_types_are_searched_again() -> None:
    reader, resources = EntryReader(), by_key(event_type(name) for name in TYPES)
    before = reader.read(resources, router(trigger("ta", "a"), trigger("tb", "b")))

    after = reader.read(resources, router(trigger("other", "a"), trigger("tb", "b")), {"a"})

    assert routes(after) == {"a": ("other",), "b": ("tb",)}
    assert after[1] is before[1]


def test_without_a_list_of_changes_every_route_is_searched_again() -> None:
    reader, resources = EntryReader(), by_key(event_type(name) for name in TYPES)
    reader.read(resources, router(trigger("all", None)))

    assert routes(reader.read(resources, router())) == {"a": "NoTrigger", "b": "NoTrigger"}


def test_why_there_is_no_route_is_looked_up_again_whatever_was_touched() -> None:
    reader, resources = EntryReader(), by_key([event_type("get.weather")])
    assert routes(reader.read(resources, router())) == {"get.weather": "NoTrigger"}

    assert routes(reader.read(resources, router(trigger("t", "get.wether")), {"get.wether"})) == {
        "get.weather": "FilterMismatch"
    }


def test_rivals_name_each_other_and_go_when_they_go() -> None:
    reader, table = EntryReader(), router()
    same = {"beckon.dev/tool-name": "same"}
    rivals = [event_type(name, annotations=same) for name in TYPES]

    first, second = reader.read(by_key(rivals), table)
    (left,) = reader.read(by_key(rivals[:1]), table)

    assert first.rivals == (Identity("default", "b"),)
    assert second.rivals == (Identity("default", "a"),)
    assert left.rivals == ()
    assert left.tool is not None
    assert left.tool.name == "same"
