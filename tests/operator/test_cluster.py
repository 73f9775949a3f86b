import pytest

from beckon_operator.cluster import Cluster, Touched
from beckon_operator.desired_state import DesiredState
from beckon_operator.objects import BROKERS, EVENT_TYPES, TOOLS, TRIGGERS
from tests.operator.documents import PARAMETERS, Document, broker, event_type, ready, thing, trigger


class Watched(Cluster):
    """A cluster that records the changes reported to it."""

    def __init__(self) -> None:
        self.changes: list[tuple[Touched, frozenset[str]]] = []
        super().__init__(DesiredState(), lambda _, touched, request: self.changes.append((touched, request)))

    def names(self) -> list[str]:
        return sorted(found.name for found in self.objects_of(EVENT_TYPES))


def test_each_kind_of_change_shows_what_it_touches() -> None:
    cluster = Watched()
    cluster.observe_object(EVENT_TYPES, event_type())
    cluster.observe_object(TRIGGERS, trigger(wants="a"))
    cluster.observe_object(TRIGGERS, trigger(wants="b"))
    cluster.observe_object(TRIGGERS, trigger(wants=None))
    cluster.observe_object(BROKERS, broker())

    nothing: frozenset[str] = frozenset()
    assert cluster.changes == [
        (nothing, nothing),
        ({"a"}, {"a"}),
        ({"a", "b"}, {"a", "b"}),
        (None, {"b"}),
        (None, nothing),
    ]


def test_an_older_version_changes_nothing() -> None:
    cluster = Watched()
    old, new = trigger(wants="old"), trigger(wants="new")
    cluster.observe_object(TRIGGERS, new)
    cluster.observe_object(TRIGGERS, old)
    cluster.observe_object(TRIGGERS, new)

    assert len(cluster.changes) == 1
    assert [found.trigger.name for found in cluster.listeners_for("new")] == ["weather"]
    assert cluster.listeners_for("old") == []


def test_the_status_of_an_event_type_is_no_news() -> None:
    cluster = Watched()
    cluster.observe_object(EVENT_TYPES, event_type())
    later = event_type()
    later["status"] = ready()
    cluster.observe_object(EVENT_TYPES, later)

    assert len(cluster.changes) == 1


def test_the_deletion_of_the_former_object_of_a_name_does_not_touch_the_new_one() -> None:
    cluster = Watched()
    old, new = event_type(uid="old"), event_type(uid="new")
    cluster.observe_object(EVENT_TYPES, old)
    cluster.observe_object(EVENT_TYPES, new)
    cluster.observe_deletion(EVENT_TYPES, old["metadata"])
    assert cluster.names() == ["get.weather"]

    late = event_type(uid="old")
    cluster.observe_object(EVENT_TYPES, late)
    found = cluster.objects_of(EVENT_TYPES).find_object("team", "get.weather")
    assert found is not None
    assert found.uid == "new"


def test_what_is_gone_does_not_come_back_with_a_late_event() -> None:
    cluster = Watched()
    before, after = event_type(), event_type()
    cluster.observe_deletion(EVENT_TYPES, before["metadata"])
    cluster.observe_object(EVENT_TYPES, after)

    assert cluster.names() == []


def test_what_a_list_does_not_hold_is_missing_unless_it_came_later() -> None:
    cluster = Watched()
    gone, stays = event_type("gone"), event_type("stays")
    listed = int(stays["metadata"]["resourceVersion"])
    for document in (gone, stays, event_type("later")):
        cluster.observe_object(EVENT_TYPES, document)

    missing = cluster.missing_from(EVENT_TYPES, {stays["metadata"]["uid"]}, listed, "")

    assert missing == [{"namespace": "team", "name": "gone", "uid": gone["metadata"]["uid"]}]
    assert cluster.missing_from(EVENT_TYPES, set(), 0, "") == []


def test_a_list_of_one_namespace_says_nothing_of_others() -> None:
    cluster = Watched()
    for namespace in ("team", "shop"):
        cluster.observe_object(EVENT_TYPES, event_type(namespace=namespace, uid=namespace))

    missing = cluster.missing_from(EVENT_TYPES, set(), 10**9, "shop")

    assert [found["namespace"] for found in missing] == ["shop"]


def test_an_earlier_version_is_known_and_a_later_one_is_not() -> None:
    cluster = Watched()
    earlier, seen, later = event_type(), event_type(), event_type()
    cluster.observe_object(EVENT_TYPES, seen)

    assert [cluster.knows_version(EVENT_TYPES, one["metadata"]) for one in (earlier, seen, later)] == [
        True,
        True,
        False,
    ]
    assert not cluster.knows_version(EVENT_TYPES, event_type("other")["metadata"])


def test_an_object_that_cannot_be_read_is_as_if_it_were_not_there(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Watched()
    cluster.observe_object(EVENT_TYPES, event_type())
    broken = event_type()
    broken["spec"]["extra"] = deep(200)
    cluster.observe_object(EVENT_TYPES, broken)

    assert cluster.names() == []
    assert "get.weather: it is nested deeper than" in caplog.text

    cluster.observe_object(EVENT_TYPES, event_type())
    assert cluster.names() == ["get.weather"]


def deep(levels: int) -> Document:
    return {"a": deep(levels - 1)} if levels else {}


def seen_schema(cluster: Watched) -> tuple[object, bool]:
    (found,) = cluster.objects_of(EVENT_TYPES)
    return found.resource.spec.get("schemaData"), found.remembered


def test_a_schema_that_knative_erases_is_remembered_for_its_generation() -> None:
    cluster = Watched()
    cluster.observe_object(EVENT_TYPES, event_type(spec={"schemaData": PARAMETERS}, annotations={}))
    assert seen_schema(cluster) == (PARAMETERS, False)

    cluster.observe_object(EVENT_TYPES, event_type(annotations={}))
    assert seen_schema(cluster) == (PARAMETERS, True)
    cluster.observe_object(EVENT_TYPES, event_type(annotations={}, labels={"x": "y"}))
    assert seen_schema(cluster) == (PARAMETERS, True)

    cluster.observe_object(EVENT_TYPES, event_type(annotations={}, generation=2))
    assert seen_schema(cluster) == (None, False)


@pytest.mark.parametrize(
    "name",
    ["beckon.dev/parameters", "beckon.dev/schema-data", "kubectl.kubernetes.io/last-applied-configuration"],
)
def test_what_is_in_a_place_that_lasts_needs_no_memory(name: str) -> None:
    cluster = Watched()
    cluster.observe_object(EVENT_TYPES, event_type(spec={"schemaData": PARAMETERS}, annotations={}))
    cluster.observe_object(EVENT_TYPES, event_type(annotations={name: "{}"}))

    assert seen_schema(cluster) == (None, False)


def test_a_new_object_of_the_same_name_does_not_inherit_a_schema() -> None:
    cluster = Watched()
    first = event_type(spec={"schemaData": PARAMETERS}, annotations={})
    cluster.observe_object(EVENT_TYPES, first)
    cluster.observe_deletion(EVENT_TYPES, first["metadata"])
    cluster.observe_object(EVENT_TYPES, event_type(annotations={}, uid="new"))

    assert seen_schema(cluster) == (None, False)


@pytest.mark.parametrize(
    ("generation", "place", "remembered"),
    [(1, "spec.schemaData", True), (2, "spec.schemaData", False), (1, "spec.schema", False)],
)
def test_a_tool_remembers_the_schema_that_it_was_made_of(
    generation: int, place: str, *, remembered: bool
) -> None:
    cluster = Watched()
    spec = {
        "parametersFrom": place,
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
    }
    status = {"eventType": {"uid": "uid-EventType-get.weather", "generation": generation}}
    cluster.observe_object(TOOLS, thing("beckon.dev/v1alpha1", "Tool", "get.weather", spec, status))
    cluster.observe_object(EVENT_TYPES, event_type(annotations={}))

    assert seen_schema(cluster)[1] is remembered
