"""A real Prometheus, of the machine: `apt-get install prometheus` brings it and promtool."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.patience import PATIENCE


def program(name: str) -> str:
    """Return the path of one of its programs; skip the test where there is none, but not in CI."""
    found = shutil.which(name)
    if found is None and os.environ.get("CI"):
        pytest.fail(f"{name} is missing: apt-get install prometheus")
    if found is None:
        pytest.skip(f"there is no {name}; apt-get install prometheus brings it")
    return found


class Prometheus:
    """One that runs, at `url`."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=PATIENCE)

    def ask(self, query: str) -> list[Mapping[str, Any]]:
        """Return what an expression gives now; fail where it is none."""
        answer = self._client.get("/api/v1/query", params={"query": query}).json()
        assert answer["status"] == "success", f"{query}: {answer.get('error')}"
        result: list[Mapping[str, Any]] = answer["data"]["result"]
        return result

    def values(self, label: str, metric: str) -> set[str]:
        """Return the values of a label, as a variable of a dashboard asks for them."""
        answer = self._client.get(f"/api/v1/label/{label}/values", params={"match[]": metric}).json()
        assert answer["status"] == "success", answer
        return set(answer["data"])

    def is_up(self) -> bool:
        """Whether it answers."""
        try:
            return self._client.get("/-/ready").status_code == 200
        except httpx.TransportError:
            return False

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()


@contextmanager
def prometheus(folder: Path, port: int, targets: Mapping[str, str]) -> Iterator[Prometheus]:
    """Run one that scrapes these addresses every two seconds, each as the pod of that name."""
    jobs = [
        {"targets": [address], "labels": {"namespace": "team", "pod": pod}}
        for pod, address in targets.items()
    ]
    config = {
        "global": {"scrape_interval": "2s", "scrape_timeout": "2s"},
        "scrape_configs": [{"job_name": "beckon", "static_configs": jobs}],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    with (folder / "prometheus.txt").open("wb") as output:
        process = subprocess.Popen(
            [
                program("prometheus"),
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=output,
            stderr=output,
        )
    running = Prometheus(f"http://127.0.0.1:{port}")
    try:
        yield running
    finally:
        running.close()
        process.terminate()
        process.wait(30)
