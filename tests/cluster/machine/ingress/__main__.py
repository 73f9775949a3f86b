"""The ingress pod: nginx follows the cluster's KIngress resources, and their status says when it does."""

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
from pathlib import Path
from typing import Any

from tests.cluster.machine.ingress import api, nginx

Resource = dict[str, Any]

CONFIGURATION = Path("/tmp/nginx.conf")
NGINX = ("/usr/sbin/nginx", "-e", "stderr", "-c", str(CONFIGURATION), "-g", "daemon off;")
CLASS_ANNOTATION = "networking.knative.dev/ingress.class"
NAMES_SECONDS = 3
READY_CONDITIONS = ("LoadBalancerReady", "NetworkConfigured", "Ready")


class Ingress:
    """nginx and its latest configuration."""

    def __init__(self, ingress_class: str, own_name: str, resolver: str) -> None:
        self.ingress_class, self.own_name, self.resolver = ingress_class, own_name, resolver
        self.known: dict[str, Resource] = {}
        self.loaded = self.write()
        self.process = subprocess.Popen(NGINX)

    def run(self) -> None:
        """Follow the resources; an unreachable API server is tried again, a dead nginx ends the pod."""
        while self.process.poll() is None:
            try:
                self.follow()
            except (OSError, http.client.HTTPException) as problem:
                report(f"API server: {problem}; trying again")
                time.sleep(1)
        sys.exit("nginx ended")

    def follow(self) -> None:
        """Take everything that exists, then every change, until the watch ends."""
        listed, version = api.ingresses()
        self.known = {one["metadata"]["uid"]: one for one in listed if self.is_ours(one)}
        self.settle()
        for kind, one in api.changes(version):
            if not self.is_ours(one):
                continue
            if kind == "DELETED":
                self.known.pop(one["metadata"]["uid"], None)
            else:
                self.known[one["metadata"]["uid"]] = one
            self.settle()

    def is_ours(self, ingress: Resource) -> bool:
        """Whether this ingress is to serve it."""
        return bool(ingress["metadata"].get("annotations", {}).get(CLASS_ANNOTATION) == self.ingress_class)

    def settle(self) -> None:
        """Bring nginx to what is known; only when it serves that, write the resources' status."""
        if (wanted := self.write()) != self.loaded:
            wait_for_names(nginx.upstreams(self.known.values()))
            self.process.send_signal(signal.SIGHUP)
            while loaded_digest() != wanted:
                time.sleep(0.01)
            self.loaded = wanted
        for ingress in self.known.values():
            status = self.ready_status(ingress)
            if not contains(ingress.get("status", {}), status):
                try:
                    api.write_status(ingress, status)
                except (
                    urllib.error.HTTPError
                ) as problem:  # deleted or changed meanwhile: its own event follows
                    report(f"status of {ingress['metadata']['name']}: {problem}")

    def write(self) -> str:
        """Write the configuration file and return its digest; what cannot be written safely is left out."""
        servable = [one for one in self.known.values() if self.can_serve(one)]
        text, digest = nginx.configuration(servable, self.resolver)
        CONFIGURATION.write_text(text)
        return digest

    def can_serve(self, ingress: Resource) -> bool:
        """Whether nginx can be configured to serve this resource."""
        try:
            nginx.configuration([ingress], self.resolver)
        except (ValueError, LookupError) as problem:
            report(f"{ingress['metadata']['name']} is left out: {problem}")
            return False
        return True

    def ready_status(self, ingress: Resource) -> Resource:
        """The status of a resource that is served."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        balancer = {"ingress": [{"domainInternal": self.own_name}]}
        return {
            "observedGeneration": ingress["metadata"]["generation"],
            "conditions": [
                {"type": name, "status": "True", "lastTransitionTime": now} for name in READY_CONDITIONS
            ],
            "publicLoadBalancer": balancer,
            "privateLoadBalancer": balancer,
        }


def contains(found: Resource, wanted: Resource) -> bool:
    """Whether a status says what we would write; times and extra fields of the conditions do not count."""
    conditions = {(one["type"], one["status"]) for one in found.get("conditions", ())}
    return all(
        {(one["type"], one["status"]) for one in value} <= conditions
        if key == "conditions"
        else found.get(key) == value
        for key, value in wanted.items()
    )


def wait_for_names(names: set[str]) -> None:
    """Wait, a few seconds at most, until the cluster's DNS knows the Services that were made a moment ago."""
    deadline = time.monotonic() + NAMES_SECONDS
    for name in names:
        while time.monotonic() < deadline:
            try:
                socket.getaddrinfo(f"{name}.", None, family=socket.AF_INET)
                break
            except OSError:
                time.sleep(0.02)


def loaded_digest() -> str:
    """What nginx says it has loaded; empty while it does not answer."""
    connection = http.client.HTTPConnection("127.0.0.1", nginx.HASH_PORT, timeout=5)
    try:
        connection.request("GET", "/")
        return connection.getresponse().read().decode()
    except OSError:
        return ""
    finally:
        connection.close()


def report(line: str) -> None:
    """Write a line to the pod's log."""
    sys.stderr.write(line + "\n")


def main() -> None:
    """Serve until SIGTERM, which nginx gets as a wish to finish its requests first."""
    ingress = Ingress(os.environ["INGRESS_CLASS"], os.environ["OWN_NAME"], os.environ["RESOLVER"])

    def end(*_: object) -> None:
        ingress.process.send_signal(signal.SIGQUIT)
        sys.exit(ingress.process.wait())

    signal.signal(signal.SIGTERM, end)
    ingress.run()


main()
