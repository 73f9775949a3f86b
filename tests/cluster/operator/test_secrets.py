"""What the account of the operator may write of Secrets: its three names, of one type."""

import json

import pytest

from tests.cluster.kube import Kube
from tests.cluster.operator.account import Account
from tests.cluster.policies import until_in_force

OWN = ("beckon-shim-keys", "beckon-agent-keys", "beckon-first-key")
MESSAGE = "the operator of Beckon may write its own Secrets"
CREATE = ("create", "-f", "-")


def secret(name: str, kind: str = "Opaque", **metadata: object) -> str:
    fields = {"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": {"name": name, **metadata}}
    return json.dumps({**fields, "stringData": {"username": "a", "password": "b"}})


@pytest.fixture
def home(account: Account) -> Kube:
    """The namespace of the account, with the policy in force; other tests may have made its Secrets."""
    for name in OWN:
        account.home.run("delete", "secret", name, "--ignore-not-found")
    until_in_force(account.home, account.user, *CREATE, stdin=secret("another"))
    return account.home


@pytest.mark.parametrize("name", OWN)
def test_the_operator_makes_its_own_secrets(account: Account, home: Kube, name: str) -> None:
    home.run(*CREATE, "--dry-run=server", f"--as={account.user}", stdin=secret(name))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param("another", "Opaque", id="another name"),
        pytest.param("beckon-shim-keys-2", "Opaque", id="a longer name"),
        pytest.param("beckon-model", "Opaque", id="the key of the model"),
        pytest.param("beckon-webhook-tls", "Opaque", id="that of the webhook"),
        *(
            pytest.param("beckon-first-key", kind, id=kind)
            for kind in ("kubernetes.io/basic-auth", "example.dev/another")
        ),
    ],
)
def test_another_secret_is_refused(account: Account, home: Kube, name: str, kind: str) -> None:
    done = home.attempt(*CREATE, f"--as={account.user}", stdin=secret(name, kind))

    assert MESSAGE in done.stderr
    assert home.find("secret", name) is None


def test_it_gets_no_token_of_an_account_by_a_secret(account: Account, home: Kube) -> None:
    """Kubernetes fills such a Secret with a token that has no end."""
    token = secret(
        "beckon-first-key",
        "kubernetes.io/service-account-token",
        annotations={"kubernetes.io/service-account.name": "operator"},
    )

    done = home.attempt(*CREATE, f"--as={account.user}", stdin=token)

    assert MESSAGE in done.stderr


def test_a_generated_name_is_refused(account: Account, home: Kube) -> None:
    named = json.loads(secret("beckon-shim-keys"))
    named["metadata"] = {"generateName": "beckon-shim-keys"}

    done = home.attempt(*CREATE, f"--as={account.user}", stdin=json.dumps(named))

    assert MESSAGE in done.stderr


def test_others_make_secrets_as_before(account: Account, home: Kube) -> None:
    home.run(*CREATE, "--dry-run=server", stdin=secret("another", "kubernetes.io/basic-auth"))
