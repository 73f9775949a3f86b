"""`beckon import openapi` as its user sees it: what it prints, writes, replaces and refuses."""

import json
from pathlib import Path

import pytest
import yaml

from beckon_cli.entry import app
from beckon_cli.errors import CommandError
from beckon_cli.importing.documents import FileDocuments
from beckon_cli.importing.openapi.finding import read_description, select_operations
from beckon_cli.importing.openapi.naming import name_operations
from beckon_cli.importing.openapi.openapi3 import ServerChoice
from tests.cli.importing.reading import openapi, written
from tests.cli.run_beckon import beckon

GET = {"summary": "Get it.", "responses": {"200": {"description": "It."}}}
PETS = openapi(
    {
        "/pets": {"get": {**GET, "operationId": "listPets", "tags": ["pets"]}, "post": GET},
        "/pets/{id}": {"get": GET, "delete": {**GET, "security": [{"key": []}]}},
        "/pets/{id}/toys": {"get": {**GET, "tags": ["toys"]}},
        "/odd": {"trace": GET},
    },
    components={"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
)


def run(folder: Path, *words: str) -> list[str]:
    """Import the pets in a folder, and return the lines that were printed."""
    ended = beckon("import", "openapi", "api.yaml", *words, cwd=folder)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def refused(folder: Path, *words: str, status: int = 2) -> str:
    ended = beckon("import", "openapi", *words, cwd=folder)
    assert ended.returncode == status
    assert ended.stderr.count("\n") == 1, ended.stderr
    return ended.stderr


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    written(tmp_path, PETS)
    return tmp_path


def test_without_output_manifests_are_printed_and_all_else_goes_to_standard_error(pets: Path) -> None:
    ended = beckon("import", "openapi", "api.yaml", "--broker", "b", "--namespace", "n", cwd=pets)

    documents = list(yaml.safe_load_all(ended.stdout))
    assert [document["kind"] for document in documents] == ["EventType", "Trigger"] * 5
    assert {document["metadata"]["namespace"] for document in documents} == {"n"}
    assert documents[1]["spec"]["broker"] == "b"
    assert "6 operations, 5 imported, 1 skipped" in ended.stderr
    assert [path.name for path in pets.iterdir()] == ["api.yaml"]


def test_output_writes_a_file_for_each_operation_and_says_what_the_owner_sets(pets: Path) -> None:
    lines = run(pets, "--output", "out")

    names = ["list-pets", "create-pet", "get-pet", "delete-pet", "list-pet-toys"]
    assert {path.stem for path in (pets / "out").iterdir()} == set(names)
    assert [line.split() for line in lines[:5]] == [["added", f"{name}.yaml"] for name in names]
    assert lines[-3:] == [
        "the adapter's owner sets:",
        "BECKON_ADAPTER_ALLOWED_HOSTS=pets.example",
        "BECKON_ADAPTER_CREDENTIALS='[{name: pets, hosts: [pets.example], type: bearer, file: pets.secret}]'",
    ]


def test_hints_follow_the_method(pets: Path) -> None:
    run(pets, "--output", "out")
    hints = {
        path.stem: {
            name.removeprefix("beckon.dev/")
            for name in yaml.safe_load(path.read_text().split("---")[1])["metadata"]["annotations"]
        }
        - {"http", "parameters", "imported-from"}
        for path in (pets / "out").iterdir()
    }

    assert hints["get-pet"] == {"read-only", "idempotent"}
    assert hints["delete-pet"] == {"idempotent", "destructive"}
    assert hints["create-pet"] == set()


def test_a_second_import_writes_nothing_and_every_byte_is_the_same(pets: Path) -> None:
    run(pets, "--output", "out")
    before = {path: path.stat().st_mtime_ns for path in (pets / "out").iterdir()}

    lines = run(pets, "--output", "out")

    assert {path: path.stat().st_mtime_ns for path in (pets / "out").iterdir()} == before
    assert "files: 0 added, 0 changed, 5 unchanged, 0 removed" in lines[1]


def test_what_changed_is_replaced_what_is_gone_is_removed_and_what_was_not_chosen_stays(pets: Path) -> None:
    run(pets, "--output", "out")
    changed = json.loads(json.dumps(PETS))
    changed["paths"]["/pets"]["get"]["summary"] = "List the pets."
    del changed["paths"]["/pets/{id}"]["delete"]
    changed["paths"]["/vets"] = {"get": GET}
    written(pets, changed)

    lines = run(pets, "--output", "out", "--select", "/pets", "--select", "/vets")

    assert [line.split() for line in lines[:3]] == [
        ["added", "list-vets.yaml"],
        ["changed", "list-pets.yaml"],
        ["removed", "delete-pet.yaml"],
    ]
    assert "files: 1 added, 1 changed, 1 unchanged, 1 removed" in lines[3]
    assert (pets / "out" / "list-pet-toys.yaml").exists()


def test_what_an_import_would_change_is_shown_and_nothing_written(pets: Path) -> None:
    run(pets, "--output", "out")
    before = {path.name: path.read_text() for path in (pets / "out").iterdir()}
    same = run(pets, "--output", "out", "--diff")
    changed = json.loads(json.dumps(PETS))
    changed["paths"]["/pets"]["get"] |= {
        "summary": "List the pets.",
        "parameters": [{"name": "age", "in": "query", "schema": {"type": "integer"}}],
    }
    del changed["paths"]["/pets/{id}"]["delete"]
    changed["paths"]["/vets"] = {"get": GET}
    written(pets, changed)

    shown = beckon("import", "openapi", "api.yaml", "--output", "out", "--diff", cwd=pets)

    assert same == ["Pets: 6 operations, 0 differ"]
    assert shown.returncode == 1
    assert shown.stdout.splitlines() == [
        "changed  GET /pets: another description, a new parameter age, another rule",
        "new      GET /vets: Get it.",
        "gone     DELETE /pets/{id}",
        "Pets: 6 operations, 3 differ",
    ]
    assert {path.name: path.read_text() for path in (pets / "out").iterdir()} == before


def test_another_prefix_renames_the_files(pets: Path) -> None:
    run(pets, "--output", "out")

    run(pets, "--output", "out", "--prefix", "Zoo")

    stems = {path.stem for path in (pets / "out").iterdir()}
    assert stems == {"zoo-list-pets", "zoo-create-pet", "zoo-get-pet", "zoo-delete-pet", "zoo-list-pet-toys"}


@pytest.mark.parametrize("text", ["kind: EventType\n", "hello: there\n", "a: [", "# mine\n"])
def test_a_file_of_other_origin_is_never_touched(pets: Path, text: str) -> None:
    (pets / "out").mkdir()
    (pets / "out" / "get-pet.yaml").write_text(text)

    said = refused(pets, "api.yaml", "--output", "out")

    assert "get-pet.yaml was not written by an import of Pets in api.yaml" in said
    assert [path.name for path in (pets / "out").iterdir()] == ["get-pet.yaml"]
    assert (pets / "out" / "get-pet.yaml").read_text() == text


def test_imports_of_other_descriptions_stand_beside_each_other(pets: Path) -> None:
    run(pets, "--output", "out")
    other = {**PETS, "info": {"title": "Others", "version": "1"}}
    written(pets, other, "other.yaml")

    said = refused(pets, "other.yaml", "--output", "out")
    beside = beckon("import", "openapi", "other.yaml", "--output", "out", "--prefix", "other", cwd=pets)

    assert "was not written by an import of Others in other.yaml" in said
    assert beside.returncode == 0
    assert len(list((pets / "out").iterdir())) == 10


def test_single_writes_one_file(pets: Path) -> None:
    run(pets, "--output", "out")

    lines = run(pets, "--output", "out", "--single")

    assert [path.name for path in (pets / "out").iterdir()] == ["pets.yaml"]
    assert [line.split()[0] for line in lines[:6]] == ["added", *["removed"] * 5]
    assert len(list(yaml.safe_load_all((pets / "out" / "pets.yaml").read_text()))) == 10


def test_json_shows_programs_the_same(pets: Path) -> None:
    document = json.loads("\n".join(run(pets, "--output", "out", "--json")))
    listed = json.loads("\n".join(run(pets, "--list", "--json")))

    assert document["files"]["added"][0] == "list-pets.yaml"
    assert listed["tools"][0]["name"] == "list_pets"
    assert listed["skipped"][0]["operation"] == "TRACE /odd"
    assert listed["credentials"] == {"pets": ["a bearer token in Authorization"]}


def test_skipped_operations_are_no_failure_unless_that_is_requested(pets: Path) -> None:
    assert beckon("import", "openapi", "api.yaml", "--list", "--strict", cwd=pets).returncode == 1
    nothing = beckon("import", "openapi", "api.yaml", "--list", "--select", "TRACE", cwd=pets)

    assert nothing.returncode == 1
    assert "no operation could be imported" in nothing.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["missing.yaml"], "there is no file missing.yaml"),
        (["api.yaml", "--select", "listPet"], "means no operation; did you mean 'listPets'?"),
        (["api.yaml", "--select", "GET /vets"], "means no operation"),
        (["api.yaml", "--server", "7"], "there is only a list of 1 server; --list shows it"),
        (["api.yaml", "--server-variable", "x"], "is not NAME=VALUE"),
        (["api.yaml", "--diff"], "--diff needs the folder"),
        (["api.yaml", "--json"], "--json needs --output or --list"),
        (["http://127.0.0.1:9/api.yaml"], "cannot read http://127.0.0.1:9/api.yaml"),
    ],
)
def test_wrong_use_is_reported_in_one_line(
    pets: Path, words: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(pets)

    with pytest.raises(CommandError) as wrong:
        app(["import", "openapi", *words], print_error=False, exit_on_error=False)

    assert said in str(wrong.value)
    assert "\n" not in str(wrong.value)
    assert wrong.value.status == 2


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("listPets", ["list_pets"]),
        ("LIST_*", ["list_pets", "list_pet_toys"]),
        ("tag:toys", ["list_pet_toys"]),
        ("/pets/*", ["get_pet", "delete_pet"]),
        ("/pets/**", ["get_pet", "delete_pet", "list_pet_toys"]),
        ("DELETE", ["delete_pet"]),
        ("get /pets/{id}", ["get_pet"]),
        ("GET tag:pets", ["list_pets"]),
    ],
)
def test_operations_are_chosen_by_id_name_tag_method_and_path(
    pets: Path, word: str, meant: list[str]
) -> None:
    operations = read_description(FileDocuments(pets / "api.yaml"), ServerChoice()).operations
    names = name_operations(operations)

    chosen = select_operations(operations, names, [word])

    assert [name for name, is_meant in zip(names, chosen, strict=True) if is_meant] == meant
