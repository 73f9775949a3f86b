"""Swagger 2: what of it reaches the rule and the parameters."""

from pathlib import Path

import pytest

from beckon_cli.importing.openapi.importer import Imported
from tests.cli.importing.reading import found_in, request, tools_of, written

SWAGGER = """
swagger: 2.0
info: {title: Petstore, version: 1.0.0}
host: petstore.example
basePath: /v2
schemes: [http, https]
consumes: [application/json]
produces: [application/json, application/xml]
securityDefinitions:
  key: {type: apiKey, name: api_key, in: header}
  login: {type: oauth2, flow: implicit, authorizationUrl: https://petstore.example/login, scopes: {}}
security: [{key: []}]
paths:
  /pet/{petId}:
    parameters:
      - {$ref: "#/parameters/petId"}
    get:
      operationId: getPetByIdUsingGET_1
      summary: Find a pet.
      responses: {200: {description: A pet., schema: {$ref: "#/definitions/Pet"}}}
    post:
      operationId: updatePetWithForm
      summary: Change a pet with a form.
      consumes: [application/x-www-form-urlencoded]
      security: [{login: []}]
      parameters:
        - {name: name, in: formData, type: string, required: true}
        - {name: tags, in: formData, type: array, items: {type: string}, collectionFormat: pipes}
      responses: {200: {description: Done.}}
  /pet/{petId}/uploadImage:
    post:
      operationId: uploadFile
      summary: Upload a picture.
      consumes: [multipart/form-data]
      parameters:
        - {$ref: "#/parameters/petId"}
        - {name: note, in: formData, type: string}
        - {name: file, in: formData, type: file, required: true}
      responses: {200: {description: Done.}}
  /pet:
    post:
      operationId: addPet
      summary: Add a pet.
      parameters:
        - {name: body, in: body, required: true, schema: {$ref: "#/definitions/Pet"}}
      responses: {405: {description: No.}}
  /pet/findByStatus:
    get:
      operationId: findPetsByStatus
      summary: Find pets by status.
      parameters:
        - name: status
          in: query
          required: true
          type: array
          items: {type: string, enum: [available, sold]}
          collectionFormat: multi
        - {name: ids, in: query, type: array, items: {type: integer}}
        - {name: seen, in: query, type: array, items: {type: string}, collectionFormat: tsv}
      responses: {200: {description: Pets.}}
parameters:
  petId: {name: petId, in: path, required: true, type: integer, format: int64}
definitions:
  Pet:
    type: object
    required: [name, id]
    properties:
      id: {type: integer, readOnly: true}
      name: {type: string, example: doggie}
      category: {$ref: "#/definitions/Category"}
  Category:
    type: object
    properties: {id: {type: integer}, name: {type: string}}
"""


@pytest.fixture
def petstore(tmp_path: Path) -> dict[str, Imported]:
    return tools_of(found_in(written(tmp_path, SWAGGER)))


def test_swagger_2_becomes_tools_with_clean_names(petstore: dict[str, Imported]) -> None:
    assert list(petstore) == [
        "get_pet", "update_pet_with_form", "upload_file", "add_pet", "find_pets_by_status",
    ]  # fmt: skip


def test_swagger_2_is_called_at_its_host_by_https_for_json(petstore: dict[str, Imported]) -> None:
    found = request(petstore["get_pet"], petId=7)

    assert (found.method, found.url) == ("GET", "https://petstore.example/v2/pet/7")
    assert dict(found.headers)["accept"] == "application/json"


def test_swagger_2_bodies_are_flat_and_leave_out_what_is_read_only(petstore: dict[str, Imported]) -> None:
    add = petstore["add_pet"]

    assert add.parameters["properties"].keys() == {"name", "category"}
    assert add.parameters["required"] == ["name"]
    assert add.parameters["properties"]["category"]["properties"]["id"] == {"type": "integer"}
    assert request(add, name="Rex", category={"id": 1}).body == b'{"name":"Rex","category":{"id":1}}'


def test_swagger_2_forms_are_written_in_their_collection_format(petstore: dict[str, Imported]) -> None:
    found = request(petstore["update_pet_with_form"], petId=1, name="a b", tags=["x", "y"])

    assert found.body == b"name=a%20b&tags=x%7Cy"
    assert dict(found.headers)["content-type"] == "application/x-www-form-urlencoded"


def test_swagger_2_files_are_arguments_with_media_type_and_base64(petstore: dict[str, Imported]) -> None:
    picture = {"media_type": "image/png", "data_base64": "iVBORw=="}

    found = request(petstore["upload_file"], petId=1, file=picture)

    assert b"\x89PNG" in found.body
    assert b"image/png" in found.body


def test_swagger_2_lists_in_a_query_are_written_in_their_collection_format(
    petstore: dict[str, Imported],
) -> None:
    tool = petstore["find_pets_by_status"]

    found = request(tool, status=["available", "sold"], ids=[1, 2])

    assert found.url.endswith("/pet/findByStatus?status=available&status=sold&ids=1,2")
    assert tool.notes == ("the query parameter 'seen' is left out: which is separated by tabs",)


def test_swagger_2_security_is_that_of_the_operation_else_that_of_all(petstore: dict[str, Imported]) -> None:
    assert [str(part) for part in petstore["get_pet"].credential.parts] == ["the header api_key"]
    assert [part.kind for part in petstore["update_pet_with_form"].credential.parts] == ["bearer"]
