"""Folders of manifests: what counts, what stays through broken edits, and what a change is."""

import os
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beckon_contract.kubernetes_objects import MAX_TEXT, Resource
from beckon_sources.folders import ManifestFolders, locate_field, read_file, read_folder
from tests.sources.writing import an_object, mount, notes, text_of, write

BROKEN = "kind: [oops\n"


def refreshed(*folders: Path) -> ManifestFolders:
    found = ManifestFolders(folders)
    found.refresh()
    return found


def test_every_manifest_below_the_folder_counts_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", an_object("a"))
    write(tmp_path / "deep" / "er" / "b.yml", an_object("b"), an_object("c"))
    write(tmp_path / "d.json", an_object("d"))
    write(tmp_path / "readme.md", an_object("no"))
    write(tmp_path / ".hidden.yaml", an_object("no"))
    write(tmp_path / ".git" / "e.yaml", an_object("no"))

    assert set(notes(refreshed(tmp_path).resources)) == {"a", "b", "c", "d"}


def test_the_later_folder_and_the_later_file_win(tmp_path: Path) -> None:
    write(tmp_path / "one" / "a.yaml", an_object("x", note="first"), an_object("y", note="first"))
    write(tmp_path / "one" / "b.yaml", an_object("y", note="second"))
    write(tmp_path / "two" / "a.yaml", an_object("x", note="third"))

    assert notes(refreshed(tmp_path / "one", tmp_path / "two").resources) == {"x": "third", "y": "second"}


def test_only_a_change_is_a_change(tmp_path: Path) -> None:
    folders = ManifestFolders((tmp_path,))
    steps = [folders.refresh(), folders.refresh()]
    write(tmp_path / "a.yaml", an_object("a"))
    steps += [folders.refresh(), folders.refresh()]
    write(tmp_path / "note.txt")
    steps += [folders.refresh()]
    (tmp_path / "a.yaml").unlink()
    steps += [folders.refresh(), folders.refresh()]

    assert steps == [True, False, True, False, False, True, False]
    assert folders.resources == ()


def test_an_edit_of_the_same_size_in_place_is_seen(tmp_path: Path) -> None:
    folders = refreshed(tmp_path)
    for note in ("one", "two", "six", "ten"):
        write(tmp_path / "a.yaml", an_object("a", note=note))
        os.utime(tmp_path / "a.yaml", ns=(time.time_ns(), time.time_ns()))
        folders.refresh()

        assert notes(folders.resources) == {"a": note}


def test_a_broken_edit_keeps_what_the_file_last_held(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", an_object("a"), an_object("b"))
    folders = refreshed(tmp_path)

    (tmp_path / "a.yaml").write_text(BROKEN)
    folders.refresh()
    assert set(notes(folders.resources)) == {"a", "b"}
    (problem,) = folders.unreadable
    assert "a.yaml" in problem.origin
    assert "not YAML" in problem.message

    write(tmp_path / "a.yaml", an_object("b"))
    folders.refresh()
    assert set(notes(folders.resources)) == {"b"}
    assert folders.unreadable == ()


def test_a_file_that_is_emptied_to_be_written_keeps_what_it_held(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    write(file, an_object("a"))
    folders = refreshed(tmp_path)

    file.write_text("")
    assert folders.refresh() is False
    file.write_text(BROKEN)
    assert folders.refresh() is True

    assert list(notes(folders.resources)) == ["a"]
    assert len(folders.unreadable) == 1


def test_a_file_that_stays_empty_holds_nothing(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    write(file, an_object("a"))
    folders = refreshed(tmp_path)

    file.write_text("")
    os.utime(file, (time.time() - 2, time.time() - 2))

    assert folders.refresh() is True
    assert folders.resources == ()


def test_a_broken_document_drops_none_and_stops_no_other(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", an_object("a", note="old"), an_object("b", note="old"))
    folders = refreshed(tmp_path)
    (tmp_path / "a.yaml").write_text(f"---\n{BROKEN}{text_of(an_object('b', note='new'), an_object('c'))}")
    folders.refresh()

    assert notes(folders.resources) == {"a": "old", "b": "new", "c": ""}


def test_a_file_that_was_broken_from_the_beginning_is_reported_of(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(BROKEN)
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\xff")
    write(tmp_path / "c.yaml", an_object("c"))
    folders = refreshed(tmp_path)

    assert set(notes(folders.resources)) == {"c"}
    assert [Path(problem.origin).name for problem in folders.unreadable] == ["a.yaml", "b.yaml"]


def test_a_broken_file_is_complained_about_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.yaml").write_text(BROKEN)
    folders = refreshed(tmp_path)
    for _ in range(3):
        assert not folders.refresh()

    assert caplog.text.count("a.yaml") == 1


def test_a_renamed_file_keeps_its_objects(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", an_object("a"))
    folders = refreshed(tmp_path)
    (tmp_path / "a.yaml").rename(tmp_path / "b.yaml")

    assert folders.refresh()
    assert set(notes(folders.resources)) == {"a"}
    assert "b.yaml" in folders.resources[0].origin


def test_a_folder_may_come_later_and_go_again(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    folders = refreshed(folder)
    assert folders.resources == ()
    write(folder / "a.yaml", an_object("a"))

    assert folders.refresh()
    assert set(notes(folders.resources)) == {"a"}
    (folder / "a.yaml").unlink()
    folder.rmdir()
    assert folders.refresh()
    assert folders.resources == ()


def test_a_mounted_configmap_is_read_once_and_followed_through_its_swap(tmp_path: Path) -> None:
    mount(tmp_path, "..2026_01", an_object("a", note="one"))
    (tmp_path / "tools.yaml").symlink_to("..data/tools.yaml")
    folders = refreshed(tmp_path)
    assert [resource.name for resource in folders.resources] == ["a"]

    mount(tmp_path, "..2026_02", an_object("a", note="two"), an_object("b"))

    assert folders.refresh()
    assert notes(folders.resources) == {"a": "two", "b": ""}


def test_a_link_to_nothing_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").symlink_to("nowhere.yaml")
    folders = refreshed(tmp_path)

    assert (folders.resources, folders.unreadable) == ((), ())


def test_a_folder_with_the_name_of_a_manifest_is_no_manifest(tmp_path: Path) -> None:
    write(tmp_path / "odd.yaml" / "a.yaml", an_object("a"))

    folders = refreshed(tmp_path)

    assert set(notes(folders.resources)) == {"a"}
    assert folders.unreadable == ()


def test_a_file_over_the_limit_learns_of_and_not_read(tmp_path: Path) -> None:
    with (tmp_path / "big.yaml").open("wb") as big:
        big.truncate(MAX_TEXT + 1)

    (problem,) = refreshed(tmp_path).unreadable

    assert "split it" in problem.message


def test_thousands_of_files_are_read_and_unchanged_ones_are_not_read_again(tmp_path: Path) -> None:
    for number in range(3000):
        write(tmp_path / f"{number % 30}" / f"{number}.yaml", an_object(f"tool-{number}"))
    folders = refreshed(tmp_path)
    before = {resource.name: resource for resource in folders.resources}
    write(tmp_path / "7" / "7.yaml", an_object("tool-7", note="new"))

    assert len(before) == 3000
    assert folders.refresh()
    assert [one.name for one in folders.resources if one is not before[one.name]] == ["tool-7"]


def test_a_folder_and_a_file_can_be_read_just_once(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", an_object("a"))
    (tmp_path / "b.yaml").write_text(BROKEN)

    assert len(read_folder(tmp_path)) == 2
    (missing,) = read_file(tmp_path / "nowhere.yaml")
    assert "cannot be read" in getattr(missing, "message", "")


@given(st.binary(max_size=200))
def test_no_file_ends_the_reading(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "good.yaml", an_object("good"))
        folders = refreshed(folder)
        (folder / "z.yaml").write_bytes(content)
        folders.refresh()

        assert "good" in notes(folders.resources)


PLACES = """\
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: A, metadata: {name: a}}
- apiVersion: v1
  kind: B
  metadata: {name: b}
  spec:
    text: here
---
# nothing
---
apiVersion: v1
kind: C
metadata: {name: c}
spec:
  text: here
"""


def test_a_field_of_an_object_is_found_by_the_objects_origin(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(PLACES)

    places = {
        found.kind: locate_field(found.origin, "spec.text")
        for found in read_file(file)
        if isinstance(found, Resource)
    }

    assert places == {"A": f"{file}, line 4", "B": f"{file}, line 9", "C": f"{file}, line 17"}


@pytest.mark.parametrize("text", ["", "a: [", "kind: A\n", "\ud800"])
def test_the_place_of_an_object_that_is_gone_is_its_origin(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(text.encode("utf-16" if text == "\ud800" else "utf-8", "surrogatepass"))

    origin = f"{file}, document 2"

    assert locate_field(origin, "spec.text") == origin
    file.unlink()
    assert locate_field(origin, "spec.text") == origin
