import os
import subprocess
from pathlib import Path

import pytest

from beckon_operator.settings import Settings
from tests.command_server import run_module

KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: none, user: {token: secret-token}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
"""


def start(**environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("BECKON_", "KUBE"))
    }
    return run_module("beckon_operator", env={**inherited, **environment})


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("BECKON_PORT", "x", "valid integer"),
        ("BECKON_POD_NAMESPACE", "A", "'A' is no namespace"),
        ("BECKON_OPERATOR_WATCH_NAMESPACES", "team,Shop", "'Shop' is no namespace"),
        ("BECKON_OPERATOR_REPLIES_URL", "http://shim/replies", "pattern"),
        ("BECKON_REPLY_ATTRIBUTE", "replyId", "pattern"),
        ("BECKON_OPERATOR_TIMEOUT_BROKERS", "default", "write NAMESPACE/NAME"),
        ("BECKON_LOG_LEVEL", "loud", "Input should be"),
    ],
)
def test_a_wrong_setting_is_reported_by_its_name_in_one_line(name: str, value: str, says: str) -> None:
    ended = start(**{name: value})

    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"beckon-operator: {name}: ")
    assert says in line


def test_without_an_api_server_the_operator_says_so(tmp_path: Path) -> None:
    nowhere = start(KUBECONFIG=str(tmp_path / "missing"))
    (tmp_path / "config").write_text(KUBECONFIG)
    undecided = start(KUBECONFIG=str(tmp_path / "config"))

    assert (nowhere.returncode, undecided.returncode) == (2, 2)
    assert "no access to an API server" in nowhere.stderr
    assert "context" in undecided.stderr
    assert "secret-token" not in undecided.stderr


def test_namespaces_are_a_list_with_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BECKON_OPERATOR_WATCH_NAMESPACES", " team-b, team-a ,,team-b")

    assert Settings().watch_namespaces == ("team-a", "team-b")


def test_brokers_are_a_list_of_namespace_and_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BECKON_OPERATOR_TIMEOUT_BROKERS", " shop/default, team/a ,")

    assert Settings().timeout_brokers == (("shop", "default"), ("team", "a"))
