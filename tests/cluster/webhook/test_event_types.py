"""What becomes of `spec.schemaData` on a Knative that erases it, by the way in which it is written."""

import json
import secrets

import pytest

from tests.cluster.kube import until
from tests.cluster.platform import ROOT
from tests.cluster.webhook.hook import COPY, SERVED, TEXT, Hook, event_type

WEATHER = ROOT / "tests" / "cluster" / "journey" / "manifests" / "event-type.yaml"
OTHER = '{"city": {"type": "string"}, "unit": {"type": "string"}}'

pytestmark = pytest.mark.timeout(180)  # the first of them waits for the webhook


@pytest.fixture
def name() -> str:
    return f"weather-{secrets.token_hex(4)}"


def test_an_event_type_keeps_both_parameters_through_all_that_erases_them(hook: Hook) -> None:
    hook.kube.apply(WEATHER)

    hook.until_erased("get.current.weather")
    copy = hook.copy("get.current.weather")
    assert copy is not None
    assert json.loads(copy).keys() == {"location", "unit"}
    hook.kube.run("label", "eventtype", "get.current.weather", "team=a")
    hook.kube.run("annotate", "eventtype", "get.current.weather", "owner=b")
    hook.kube.apply(WEATHER)
    hook.until_erased("get.current.weather")
    assert hook.copy("get.current.weather") == copy


def test_a_changed_text_changes_the_copy(hook: Hook, name: str) -> None:
    hook.kube.apply(event_type(name, TEXT))
    hook.until_erased(name)
    assert hook.copy(name) == TEXT

    hook.kube.apply(event_type(name, OTHER))

    hook.until_erased(name)
    assert hook.copy(name) == OTHER


def test_a_text_taken_out_of_the_manifest_takes_its_copy_along(hook: Hook, name: str) -> None:
    hook.kube.apply(event_type(name, TEXT))
    hook.until_erased(name)

    hook.kube.apply(event_type(name, None))

    assert hook.copy(name) is None


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
@pytest.mark.parametrize("verb", ["create", "apply"])
def test_every_version_that_has_the_field_is_stored(hook: Hook, name: str, version: str, verb: str) -> None:
    hook.kube.run(verb, "-f", "-", stdin=event_type(name, TEXT, version))

    hook.until_erased(name)
    assert hook.copy(name) == TEXT


def test_a_patch_and_a_replacement_bring_the_text_too(hook: Hook, name: str) -> None:
    hook.kube.apply(event_type(name, None))
    assert hook.copy(name) is None

    hook.kube.run("patch", SERVED, name, "--type=merge", "-p", json.dumps({"spec": {"schemaData": TEXT}}))
    assert hook.copy(name) == TEXT
    until(lambda: replaced(hook, event_type(name, OTHER)), what="a replacement without a conflict")
    assert hook.copy(name) == OTHER


def replaced(hook: Hook, manifest: str) -> bool:
    """Replace an object; return false where Knative changed it between kubectl's read and write."""
    done = hook.kube.attempt("replace", "-f", "-", stdin=manifest)
    if done.returncode != 0 and "(Conflict)" in done.stderr:
        return False
    assert done.returncode == 0, done.stderr
    return True


def test_a_server_side_apply_creates_the_copy_and_its_later_changes_are_lost(hook: Hook, name: str) -> None:
    hook.kube.apply(event_type(name, TEXT), "--server-side")
    hook.until_erased(name)
    assert hook.copy(name) == TEXT

    hook.kube.apply(event_type(name, OTHER), "--server-side")

    hook.until_erased(name)
    assert hook.copy(name) == TEXT  # what docs/eventtypes.md says of it


def test_after_a_server_side_apply_the_annotation_of_ones_own_is_taken(hook: Hook, name: str) -> None:
    manifest = json.loads(event_type(name, TEXT))
    for text in (TEXT, OTHER):
        manifest["metadata"]["annotations"] = {"beckon.dev/parameters": text}
        hook.kube.apply(json.dumps(manifest), "--server-side")
        assert hook.event_type(name)["metadata"]["annotations"]["beckon.dev/parameters"] == text


def test_a_text_that_makes_no_parameters_is_stored_and_kubectl_says_what_is_wrong(
    hook: Hook, name: str
) -> None:
    done = hook.kube.attempt("apply", "-f", "-", stdin=event_type(name, "{city: string}"))

    assert done.returncode == 0
    assert "Warning: spec.schemaData makes no parameters for a tool (NotJson)" in done.stderr
    assert hook.copy(name) == "{city: string}"


def test_a_dry_run_shows_the_copy_and_stores_nothing(hook: Hook, name: str) -> None:
    shown = hook.kube.run("apply", "--dry-run=server", "-o", "json", "-f", "-", stdin=event_type(name, TEXT))

    assert json.loads(shown)["metadata"]["annotations"][COPY] == TEXT
    assert hook.kube.find(SERVED, name) is None


def test_a_write_without_the_text_does_not_even_ask(hook: Hook, name: str) -> None:
    before = hook.answered()

    hook.kube.apply(event_type(name, None))
    hook.kube.run("label", "eventtype", name, "team=a")
    hook.kube.apply(event_type(f"{name}-2", TEXT))

    assert until(lambda: hook.answered() - before, what="one answer") == 1
