"""Files in multipart bodies, as OpenAPI 3.0 and 3.1 describe them."""

from pathlib import Path

import pytest

from beckon_cli.importing.openapi.schemas import FILE
from tests.cli.importing.reading import found_in, tools_of, written

UPLOAD = """
openapi: 3.1.0
info: {title: Files, version: 1.0.0}
servers: [{url: "https://files.example"}]
paths:
  /upload:
    post:
      operationId: upload
      summary: Upload a file.
      requestBody:
        required: true
        content:
          multipart/form-data:
            schema:
              type: object
              required: [file]
              properties:
                file: {SCHEMA}
      responses: {200: {description: Done.}}
"""


def _file_of(folder: Path, schema: str) -> dict[str, object]:
    tool = tools_of(found_in(written(folder, UPLOAD.replace("SCHEMA", schema))))["upload"]
    found: dict[str, object] = tool.parameters["properties"]["file"]
    return found


@pytest.mark.parametrize(
    "schema",
    [
        "type: string, format: binary",
        "type: string, contentMediaType: application/octet-stream",
        "type: string, contentMediaType: image/png",
    ],
)
def test_a_string_of_bytes_is_a_file(tmp_path: Path, schema: str) -> None:
    assert _file_of(tmp_path, schema)["properties"] == FILE["properties"]


@pytest.mark.parametrize(
    "schema",
    [
        "type: string, contentMediaType: application/json",
        "type: string, contentMediaType: image/png, contentEncoding: base64",
    ],
)
def test_a_string_of_text_stays_a_string(tmp_path: Path, schema: str) -> None:
    assert _file_of(tmp_path, schema)["type"] == "string"
