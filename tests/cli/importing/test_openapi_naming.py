"""Names and words that a model likes, from what generators and people write."""

import pytest

from beckon_cli.importing.openapi.naming import name_operations
from beckon_cli.importing.openapi.operations import Operation
from beckon_cli.importing.openapi.words import (
    argument_name,
    describe_operation,
    split_words,
    to_plain_text,
    to_singular,
)


def name(text: str, id: str = "", **more: str) -> str:  # noqa: A002 the description's own word
    method, _, path = text.partition(" ")
    return name_operations([Operation(method.lower(), path, id, **more)])[0]  # type: ignore[arg-type]  # texts alone are given


@pytest.mark.parametrize(
    ("id", "operation", "wanted"),
    [
        ("listPets", "GET /pets", "list_pets"),
        ("getPetByIdUsingGET_1", "GET /pet/{petId}", "get_pet"),
        ("findPetsByStatusUsingGET", "GET /pet/findByStatus", "find_pets_by_status"),
        ("PetsController_findAll", "GET /pets", "pets_find_all"),
        ("read_items_api_v1_items__get", "GET /api/v1/items/", "read_items"),
        ("read_item_items__item_id__get", "GET /items/{item_id}", "read_item"),
        ("repos/list-for-org", "GET /orgs/{org}/repos", "repos_list_for_org"),
        ("Users.GetProfile", "GET /me", "users_get_profile"),
        ("getV3ProjectsIdIssues", "GET /v3/projects/{id}/issues", "list_project_issues"),
        ("getCardsBoardByIdCard", "GET /cards/{idCard}/board", "get_card_board"),
        ("listAPIs", "GET /list.json", "list_apis"),
        ("getHTTPStatus2", "GET /status", "get_http_status2"),
        ("get", "GET /things", "list_things"),
        ("d41d8cd98f00b204e9800998ecf8427e", "POST /things", "create_thing"),
        ("123", "DELETE /things/{id}", "delete_thing"),
    ],
)
def test_ids_are_freed_of_what_generators_add(id: str, operation: str, wanted: str) -> None:  # noqa: A002 the same
    assert name(operation, id) == wanted


@pytest.mark.parametrize(
    ("operation", "wanted"),
    [
        ("GET /api/v1/pets", "list_pets"),
        ("GET /api/v1/pets/{id}", "get_pet"),
        ("POST /pets", "create_pet"),
        ("PUT /pets/{id}", "update_pet"),
        ("PATCH /pets/{id}", "update_pet"),
        ("DELETE /pets/{id}/toys/{toy}", "delete_pet_toy"),
        ("GET /users/{id}/addresses", "list_user_addresses"),
        ("GET /users/{id}/status", "get_user_status"),
        ("POST /builds/{num}/retry", "retry_build"),
        ("POST /categories", "create_category"),
        ("GET /{comicId}/info.0.json", "get_info"),
        ("GET /report.json", "get_report"),
        ("GET /current?lat={lat}&lon={lon}", "get_current"),
        ("GET /", "get_root"),
        ("GET /2.0/1", "get_root"),
    ],
)
def test_where_there_is_no_id_a_verb_and_nouns_are_made(operation: str, wanted: str) -> None:
    assert name(operation) == wanted


def test_a_summary_that_lists_makes_a_list() -> None:
    assert name("GET /envvar", summary="Lists the environment variables.") == "list_envvars"


def names(*operations: str, prefix: str = "", ids: tuple[str, ...] = ()) -> list[str]:
    split_up = [text.partition(" ") for text in operations]
    given = ids or ("",) * len(operations)
    return name_operations(
        [Operation(method.lower(), path, id) for (method, _, path), id in zip(split_up, given, strict=True)],  # noqa: A001 the same
        prefix,
    )


def test_the_same_name_is_distinguished_by_method_parameters_version_or_path() -> None:
    assert names("PUT /a/{id}", "PATCH /a/{id}") == ["replace_a", "update_a"]
    assert names("GET /w?city={city}", "GET /w?lat={lat}&lon={lon}") == ["get_w_by_city", "get_w_by_lat_lon"]
    assert names("GET /a", "GET /b", ids=("readV1Pod", "readV2Pod")) == ["read_v1_pod", "read_v2_pod"]
    assert names("GET /x/{id}/a", "GET /xs/{id}/a") == ["get_x_a", "get_xs_a"]
    assert names("GET /a", "GET /b", ids=("same", "same")) == ["same", "same_2"]


def test_names_are_short_whatever_they_are_made_of() -> None:
    long = "GET /" + "/".join(f"word{'abcdefgh'[n]}" for n in range(8)) * 3

    found = names(long, long + "x", prefix="my-api")

    assert all(len(each) <= 64 and each.startswith("my_api_get_") for each in found)
    assert len(set(found)) == 2
    assert names(long, long + "x", prefix="my-api") == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("getHTTPResponse", "get http response"),
        ("oauth2Token", "oauth2 token"),
        ("createCoreV1beta1Pod", "create core v1beta1 pod"),
        ("list-my_pets.now", "list my pets now"),
        ("Größe", "gr e"),
    ],
)
def test_identifiers_are_split_into_words(text: str, words: str) -> None:
    assert split_words(text) == words.split()


@pytest.mark.parametrize(
    ("several", "one"),
    [("pets", "pet"), ("categories", "category"), ("boxes", "box"), ("addresses", "address"),
     ("news", "news"),
     ("status", "status"), ("analysis", "analysis"), ("bus", "bus"), ("searches", "search")],
)  # fmt: skip
def test_one_of_several_things_has_their_name_in_the_singular(several: str, one: str) -> None:
    assert to_singular(several) == one


@pytest.mark.parametrize(
    ("wire", "name"),
    [("petId", "petId"), ("X-Request-Id", "X_Request_Id"), ("filter[name]", "filter_name"), ("$top", "top"),
     ("2fa", "n_2fa"), ("名", "value"), ("_", "value")],
)  # fmt: skip
def test_arguments_have_names_that_every_provider_takes(wire: str, name: str) -> None:
    assert argument_name(wire) == name


def test_descriptions_are_plain_and_end_with_a_sentence() -> None:
    page = '# Title\n\nGet *one* **thing** [here](https://a.example "x").\n```\n{}\n```\n<br/>< 5&nbsp;€.'

    assert to_plain_text(page, 100) == "Title Get *one* thing here. < 5 €."
    assert to_plain_text("One is here. Two is longer than that.", 20) == "One is here."
    assert to_plain_text("Onewordthatislong and more of it", 20) == "Onewordthatislong…"


def test_a_summary_is_not_said_twice() -> None:
    assert describe_operation("List pets", "List pets.") == "List pets."
    assert describe_operation("List pets", "List pets by age.") == "List pets by age."
    assert describe_operation("List pets", "By age.") == "List pets. By age."
    assert describe_operation("", "By age.") == "By age."
