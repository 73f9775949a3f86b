"""On what it was measured: a line above the tables."""

import json
import os
import platform
import time

from tests.cluster.kube import Kube


def describe(kube: Kube) -> str:
    """Return date, cores, load and versions; call it before anything runs."""
    versions = json.loads(kube.run("version", "-o", "json"))
    controller = kube.within("knative-eventing").get("deployment", "eventing-controller")
    eventing = controller["metadata"]["labels"].get("app.kubernetes.io/version", "of unknown version")
    return (
        f"{time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f} before the start, Linux {platform.release()}, "
        f"Kubernetes {versions['serverVersion']['gitVersion']}, Knative Eventing {eventing}"
    )
