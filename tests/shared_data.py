"""Third-party test data: read in place beside the project, never committed."""

from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def shared_data(*parts: str) -> Path:
    """Return a path in the shared data; skip the calling module where the data is absent."""
    path = DATA.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"the shared test data {'/'.join(parts)} is not here", allow_module_level=True)
    return path
