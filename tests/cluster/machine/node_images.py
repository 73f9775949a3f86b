"""Which images the cluster itself needs, and what goes into each."""

from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.cluster.machine import programs
from tests.cluster.machine.containerd import PAUSE_IMAGE
from tests.cluster.machine.images import Image, layer, program_image
from tests.cluster.machine.ingress.root import root
from tests.cluster.machine.places import PROGRAMS, Places

BUSYBOX = Path("/bin/busybox")
DNS_IMAGE = "dev.local/coredns:1"
METRICS = "metrics-server"
METRICS_IMAGE = f"dev.local/{METRICS}:1"
CERTIFICATES = "cert-manager"
CERTIFICATES_IMAGE = f"dev.local/{CERTIFICATES}:1"
INGRESS_IMAGE = "dev.local/kingress:1"
INGRESS_HOME = "opt/kingress"
INGRESS_CODE = Path(__file__).resolve().parent / "ingress"
CHECKOUT = Path(__file__).resolve().parents[3]
CHART_VALUES = CHECKOUT / "charts" / "beckon" / "values.yaml"
NATS = "nats-server"


def basic(places: Places) -> Iterator[Image]:
    """The images of pods themselves, the cluster's DNS, metrics of pods, and certificates."""
    yield Image(PAUSE_IMAGE, (layer({"bin/busybox": BUSYBOX}),), ("/bin/busybox", "sleep", "infinity"))
    yield program_image(DNS_IMAGE, places.program("coredns", "coredns"), "bin")
    yield program_image(METRICS_IMAGE, places.program(METRICS, METRICS), "bin")
    yield program_image(CERTIFICATES_IMAGE, places.program(CERTIFICATES, CERTIFICATES), "bin")


def knative(places: Places, product: str) -> Iterator[Image]:
    """An image for each of the product's programs, named after the package that it is built from."""
    for package in packages(product):
        program = places.program(product, package.rpartition("/")[2])
        yield program_image(image_name(product, package), program, "ko-app")


def packages(product: str) -> list[str]:
    """The package paths of the `tool` lines in the product's `go.mod`."""
    wanted = f"{programs.PRODUCTS[product]}/cmd/"
    lines = (PROGRAMS / product / "go.mod").read_text().splitlines()
    return [word for line in lines for word in line.removeprefix("tool").split() if word.startswith(wanted)]


def image_name(product: str, package: str) -> str:
    """`dev.local/knative-eventing/broker/filter:1.22.2`, such as it is in the rewritten release."""
    inner = package.partition("/cmd/")[2]
    return f"dev.local/knative-{product}/{inner}:{programs.release(product)}"


def ingress(places: Places) -> Image:
    """nginx and the program that configures it."""
    files = {
        f"{INGRESS_HOME}/{path.relative_to(CHECKOUT)}": path for path in sorted(INGRESS_CODE.glob("*.py"))
    }
    return Image(
        INGRESS_IMAGE,
        (root(places), layer(files, mode=0o644)),
        ("/usr/bin/python3", "-m", "tests.cluster.machine.ingress"),
        environment={
            "PYTHONPATH": f"/{INGRESS_HOME}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PATH": "/usr/sbin:/usr/bin",
        },
    )


def nats(places: Places) -> Image:
    """The server of the tests of NATS, under the name that the chart gives to its own.

    The same name has a published image; a node with this one does not pull that.
    """
    return program_image(nats_image_name(), places.program(NATS, NATS), "bin")


def nats_image_name() -> str:
    """Return the default of the chart's value `nats.embedded.image`."""
    return str(yaml.safe_load(CHART_VALUES.read_text())["nats"]["embedded"]["image"])
