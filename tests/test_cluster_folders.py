"""No test on the cluster is left out, neither by `make test-cluster` nor for want of data."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.cluster.__main__ import HERE, PHASES

ROOT = HERE.parents[1]


def test_every_folder_with_tests_is_run() -> None:
    folders = {path.parent.name for path in HERE.glob("*/test_*.py")}

    assert sorted(name for phase in PHASES for names in phase for name in names) == sorted(folders)


def test_every_cluster_test_is_collected_with_nothing_beside_the_checkout(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT / "tests", checkout / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.iterdir():
        if path.name not in ("tests", ".git"):
            (checkout / path.name).symlink_to(path)
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [*collect, str(checkout / "tests" / "cluster")],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
    )
    collected = {Path(line.partition("::")[0]) for line in ended.stdout.splitlines() if "::" in line}

    assert ended.returncode == 0, ended.stdout
    assert collected == {path.relative_to(ROOT) for path in HERE.glob("*/test_*.py")}
