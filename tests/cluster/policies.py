"""Admission policies as they are installed, moved to the account of a test."""

import json
from collections.abc import Iterator
from typing import Any

import yaml

from tests.cluster.kube import Kube, until
from tests.cluster.platform import ROOT

POLICIES = ROOT / "deploy" / "320-admission-policies.yaml"
KINDS = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")


def installed(component: str) -> Iterator[dict[str, Any]]:
    """Yield the policies for the account of a component, and their bindings."""
    for one in yaml.safe_load_all(POLICIES.read_text(encoding="utf-8")):
        if one["metadata"]["labels"]["app.kubernetes.io/component"] == component:
            yield one


def move_policy(policy: dict[str, Any], namespace: str, account: str, suffix: str) -> dict[str, Any]:
    """Return a policy or a binding for this account in another namespace, with a suffix to its name."""
    component = policy["metadata"]["labels"]["app.kubernetes.io/component"]
    user = f"system:serviceaccount:beckon:beckon-{component}"
    text = json.dumps(policy["spec"])
    assert policy["kind"] != KINDS[0] or user in text
    text = text.replace(user, f"system:serviceaccount:{namespace}:{account}")
    spec = json.loads(text.replace("namespace == 'beckon'", f"namespace == '{namespace}'"))
    if "policyName" in spec:
        spec["policyName"] += suffix
    return {**policy, "metadata": {"name": policy["metadata"]["name"] + suffix}, "spec": spec}


def until_in_force(kube: Kube, user: str, *attempt: str, stdin: str | None = None) -> None:
    """Wait until a policy refuses an attempt of this user, which changes nothing."""

    def refused() -> bool:
        done = kube.attempt(*attempt, "--dry-run=server", f"--as={user}", stdin=stdin)
        return "ValidatingAdmissionPolicy" in done.stderr

    until(refused, what="a policy in force")
