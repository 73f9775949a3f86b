"""No folder of tests is left out by `make test-cluster`."""

from tests.cluster.__main__ import FOLDERS, HERE


def test_every_folder_with_tests_is_run() -> None:
    folders = {path.parent.name for path in HERE.glob("*/test_*.py")}

    assert set(FOLDERS) == folders
