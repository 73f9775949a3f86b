"""A secret in a file, and a certificate for `api.example.com`."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from tests.adapter.plain_api import SECRET


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(SECRET + "\n")
    return file


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def certificate(authority: trustme.CA, tmp_path: Path) -> Iterator[tuple[str, str]]:
    issued = authority.issue_cert("api.example.com")
    with issued.private_key_and_cert_chain_pem.tempfile(str(tmp_path)) as path:
        yield path, path
