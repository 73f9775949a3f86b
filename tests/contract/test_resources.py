import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beckon_contract.kubernetes_objects import (
    MAX_TEXT,
    Key,
    Resource,
    Unreadable,
    from_object,
    parse_manifests,
)
from tests.shared_data import shared_data

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"


def read(text: str) -> list[Resource | Unreadable]:
    return list(parse_manifests(text, "here.yaml"))


def read_one(text: str) -> Resource:
    (found,) = read(text)
    assert isinstance(found, Resource), found
    return found


def refused(text: str) -> str:
    (found,) = read(text)
    assert isinstance(found, Unreadable), found
    return found.message


def test_every_document_of_a_file_is_read_in_order_with_its_origin() -> None:
    text = "# only a comment\n---\n" + CONFIG % "a" + "---\n---\n" + CONFIG % "b" + "...\n"

    found = [(item.name, item.origin) for item in read(text) if isinstance(item, Resource)]

    assert found == [("a", "here.yaml"), ("b", "here.yaml, document 2")]


def test_a_document_that_cannot_be_read_costs_no_other_and_names_its_line() -> None:
    text = CONFIG % "a" + "---\nspec: [1, 2\n---\n" + CONFIG % "c"

    first, broken, last = read(text)

    assert isinstance(first, Resource)
    assert isinstance(last, Resource)
    assert isinstance(broken, Unreadable)
    assert broken.origin == "here.yaml, document 2"
    assert "line 6" in broken.message


def test_what_was_read_keeps_metadata_spec_status_and_identity() -> None:
    found = read_one(
        """
        apiVersion: eventing.knative.dev/v1
        kind: Broker
        metadata:
          name: b
          namespace: shop
          uid: u-1
          generation: 3
          labels: {team: blue}
          annotations: {note: hello}
          ownerReferences: [{kind: Boss, name: x}]
        spec: {delivery: {retry: 2}}
        status: {address: {url: http://b}}
        """
    )

    assert found.key == Key("eventing.knative.dev", "Broker", "shop", "b")
    assert str(found.key) == "Broker shop/b"
    assert found.version == "v1"
    assert (found.uid, found.generation) == ("u-1", 3)
    assert found.labels == {"team": "blue"}
    assert found.annotations == {"note": "hello"}
    assert found.owners == ({"kind": "Boss", "name": "x"},)
    assert found.spec == {"delivery": {"retry": 2}}
    assert found.status == {"address": {"url": "http://b"}}


def test_an_object_without_a_namespace_belongs_to_the_given_one() -> None:
    (found,) = parse_manifests(CONFIG % "a", "here.yaml", "shop")

    assert isinstance(found, Resource)
    assert found.namespace == "shop"
    assert read_one(CONFIG % "a").namespace == "default"


def test_lists_are_opened_and_items_of_typed_lists_get_their_kind_back() -> None:
    plain = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: s}}\n- 5\n"
    typed = "apiVersion: eventing.knative.dev/v1beta2\nkind: EventTypeList\nitems:\n- {metadata: {name: e}}\n"

    secret, broken = read(plain)
    event_type = read_one(typed)

    assert isinstance(secret, Resource)
    assert secret.kind == "Secret"
    assert isinstance(broken, Unreadable)
    assert broken.origin == "here.yaml, item 2"
    assert (event_type.kind, event_type.version) == ("EventType", "v1beta2")


def test_a_generated_name_is_marked_as_the_beginning_of_one() -> None:
    found = read_one("apiVersion: v1\nkind: Pod\nmetadata: {generateName: worker-}\n")

    assert found.name == "worker"
    assert found.name_is_prefix
    assert not read_one(CONFIG % "a").name_is_prefix


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ("{}", "metadata.name"),
        ("[]", "metadata"),
        ("{name: 5}", "metadata.name"),
        ("{name: a/b}", "metadata.name"),
        ("{name: ..}", "metadata.name"),
        ("{name: " + "a" * 254 + "}", "metadata.name"),
        ("{name: a, namespace: 5}", "metadata.namespace"),
        ("{name: a, namespace: Not_One}", "metadata.namespace"),
        ("{name: a, labels: [x]}", "metadata.labels"),
        ("{name: a, labels: {beckon.dev/tool: true}}", "metadata.labels['beckon.dev/tool']"),
        ("{name: a, annotations: {beckon.dev/timeout: 5}}", "metadata.annotations['beckon.dev/timeout']"),
        ("{name: a, annotations: {x: {}}}", "metadata.annotations['x']"),
        ("{name: a, ownerReferences: {kind: x}}", "metadata.ownerReferences"),
        ("{name: a, ownerReferences: [x]}", "metadata.ownerReferences"),
        ("{name: a, uid: 5}", "metadata.uid"),
        ("{name: a, generation: many}", "metadata.generation"),
    ],
)
def test_metadata_of_the_wrong_kind_is_named(metadata: str, field: str) -> None:
    message = refused(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {metadata}\n")

    assert message.startswith("not a valid ConfigMap" if metadata != "[]" else "not a Kubernetes object: ")
    assert field in message


def test_an_object_that_is_refused_is_named_as_far_as_it_can_be() -> None:
    message = refused("apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {a: 1}}\n")

    assert message == "not a valid Pod 'web': metadata.labels['a'] must be a string; write it in quotes"


@pytest.mark.parametrize(
    "text",
    [
        "kind: Pod\n",
        "apiVersion: v1\n",
        "apiVersion: 1\nkind: Pod\n",
        "apiVersion: v1\nkind: [x]\n",
        "- 1\n",
        "hello",
    ],
)
def test_what_is_no_object_is_refused_with_a_reason(text: str) -> None:
    assert refused(text).startswith("not a Kubernetes object: ")


def test_a_spec_that_is_no_mapping_is_refused() -> None:
    assert "spec must be a mapping" in refused(CONFIG % "a" + "spec: text\n")


def test_a_file_that_is_too_large_is_not_read() -> None:
    assert "larger than" in refused(" " * (MAX_TEXT + 1))


def test_from_object_takes_what_the_api_server_sends() -> None:
    found = from_object({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "n"}})

    assert found.key == Key("", "Service", "n", "s")


@pytest.mark.parametrize("folder", ["eventtypes", "triggers", "examples", "json-fuzz"])
def test_real_manifests_and_broken_json_never_raise(folder: str) -> None:
    files = [path for path in sorted(shared_data(folder).rglob("*")) if path.is_file()]

    for path in files:
        for found in parse_manifests(path.read_bytes().decode(errors="replace"), path.name):
            assert isinstance(found, Resource | Unreadable)
    assert files


@settings(deadline=None)
@given(st.text(max_size=200))
def test_no_text_makes_the_reader_raise(text: str) -> None:
    assert all(isinstance(found, Resource | Unreadable) for found in parse_manifests(text, "x"))


def test_objects_nested_too_deep_are_refused_wherever_they_come_from() -> None:
    deep: dict[str, object] = {}
    for _ in range(5000):
        deep = {"not": deep}

    with pytest.raises(ValueError, match="nested deeper"):
        from_object({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "spec": deep})
