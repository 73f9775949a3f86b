"""Building the Go programs: modules of their own, the ordinary `go` command, a cache outside the checkout.

Kubernetes and Knative are built from the versions of their releases, each in a module of its own. The
programs around them share one, `addons`, so that Go compiles the clients of Kubernetes once for all of them:
with versions of their own, they took 1.7 times as long to build.
"""

import hashlib
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from tests.cluster.machine.commands import ClusterError, Step, follow, output, say
from tests.cluster.machine.places import PROGRAMS, Places

PRODUCTS = {
    "kubernetes": "k8s.io/kubernetes",
    "coredns": "github.com/coredns/coredns",
    "metrics-server": "sigs.k8s.io/metrics-server",
    "cert-manager": "github.com/cert-manager/cert-manager",
    "kube-router": "github.com/cloudnativelabs/kube-router/v2",
    "eventing": "knative.dev/eventing",
    "serving": "knative.dev/serving",
    "helm": "helm.sh/helm/v3",
    "kube-score": "github.com/zegl/kube-score",
    "nats-server": "github.com/nats-io/nats-server/v2",
    "actionlint": "github.com/rhysd/actionlint",
}
_ADDONS = "addons"
_ADDON_COMMANDS = {
    "coredns": "beckon.dev/tests/cluster/addons/coredns",
    "metrics-server": "sigs.k8s.io/metrics-server/cmd/metrics-server",
    "cert-manager": "beckon.dev/tests/cluster/addons/cert-manager",
    "kube-router": "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router",
    "helm": "helm.sh/helm/v3/cmd/helm",
}
EXTRAS = ("kube-router", "kube-score", "actionlint")
"""Built when the tests of network policies, and the lints of manifests and workflows run: a cluster does
without them."""
STAMP = "built-from"
REPORT_SECONDS = 20.0
# Static programs run in empty images; -buildvcs=false keeps the result independent of this checkout's commit.
ENVIRONMENT = {"CGO_ENABLED": "0"}
FLAGS = ("-trimpath", "-buildvcs=false")
# What makes no other program, and takes a quarter of the compiler's time: debug information, which the linker
# leaves out, and collecting the garbage of a small heap.
_LESS_WORK = "-gcflags=all=-dwarf=false"
_LESS_COLLECTION = {"GOGC": "400", "GOMEMLIMIT": "1GiB"}


def build_all(places: Places, products: Sequence[str]) -> None:
    """Build the programs of these products, and report what is left after each build."""
    for number, product in enumerate(products):
        build(places, product, left=products[number + 1 :])


def for_cluster() -> list[str]:
    """Return the products that a cluster needs."""
    return [product for product in PRODUCTS if product not in EXTRAS]


def build(places: Places, product: str, left: Sequence[str] = ()) -> Path:
    """Build the programs of `product` unless the cache has them from the same files and flags.

    `left` names the products to be built later, for the report. An interrupted build continues where it was:
    Go stores each package that it has compiled.

    Returns their folder; raises `ClusterError` when there is no `go`, or when the build fails.
    """
    if found := find_built(places, product):
        return found
    module, folder = _module(product), places.cache / "bin" / product
    commands = _ADDON_COMMANDS.get(product, "tool")
    if not shutil.which("go"):
        raise ClusterError(f"building {product} needs `go`: install Go from go.dev/dl and put it on PATH")
    later = f"; then {', '.join(left)}" if left else ""
    say(f"programs: building {product} {version(product)} (minutes when Go has never built it here{later})")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / STAMP).unlink(missing_ok=True)
    try:
        with Step(f"programs: {product} built"):
            follow(
                ["go", "build", "-v", *build_flags(product), _LESS_WORK, "-o", f"{folder}/", commands],
                _BuildProgress(product, _count_packages(module, commands)).take_line,
                cwd=module,
                environment={**ENVIRONMENT, **_LESS_COLLECTION},
            )
    except ClusterError as problem:
        cure = "; install a newer Go from go.dev/dl" if "requires go >=" in str(problem) else ""
        raise ClusterError(f"{problem}{cure}") from None
    (folder / STAMP).write_text(current_stamp(product))
    return folder


def find_built(places: Places, product: str) -> Path | None:
    """Return the folder of a product's programs if the cache has them from the same files and flags."""
    folder = places.cache / "bin" / product
    stamp = folder / STAMP
    return folder if stamp.is_file() and stamp.read_text() == current_stamp(product) else None


def current_stamp(product: str) -> str:
    """Return what the cache stores beside the programs that a build makes now."""
    return fingerprint(_module(product), build_flags(product))


def build_flags(product: str) -> tuple[str, ...]:
    """Return the options of `go build` for a product."""
    linker = linker_flags(version(product)) if product == "kubernetes" else "-s -w"
    return (*FLAGS, "-ldflags", linker)


def _module(product: str) -> Path:
    """Return the folder of the module that a product is built in."""
    return PROGRAMS / (_ADDONS if product in _ADDON_COMMANDS else product)


def _count_packages(module: Path, commands: str) -> int:
    """Return the number of packages in the commands of a module."""
    return len(output(["go", "list", "-deps", commands], cwd=module, environment=ENVIRONMENT).split())


class _BuildProgress:
    """Lines about a build: the packages that Go has compiled, of all of them, and the time."""

    def __init__(self, product: str, packages: int) -> None:
        self._product = product
        self._packages = packages
        self._compiled = 0
        self._started = self._reported = time.monotonic()

    def take_line(self, line: str) -> None:
        """Count a line of `go build -v`: the name of a compiled package, or a download."""
        if line and " " not in line:
            self._compiled += 1
        now = time.monotonic()
        if now - self._reported >= REPORT_SECONDS:
            self._reported = now
            say(
                f"programs: {self._product}: {self._compiled} packages compiled, of {self._packages} at most "
                f"({now - self._started:.0f} s; Ctrl-C is safe, the next start continues)"
            )


def fingerprint(module: Path, flags: tuple[str, ...]) -> str:
    """What the programs are made of, as one line."""
    digest = hashlib.sha256(repr((flags, sorted(ENVIRONMENT.items()))).encode())
    for path in (module / "go.mod", module / "go.sum", *sorted(module.rglob("*.go"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def linker_flags(kubernetes: str) -> str:
    """Without a version in it the API server reports v0.0.0, and Knative refuses all before v1.34."""
    major, minor, _ = kubernetes.removeprefix("v").split(".")
    values = {"gitVersion": kubernetes, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return "-s -w " + " ".join(f"-X k8s.io/component-base/version.{k}={v}" for k, v in values.items())


def version(product: str) -> str:
    """The version that the product's `go.mod` asks for, such as `v1.34.4`."""
    wanted = PRODUCTS[product]
    module = _module(product)
    for line in (module / "go.mod").read_text().splitlines():
        words = line.removeprefix("require").split()
        if words[:1] == [wanted] and len(words) > 1:
            return words[1]
    raise ClusterError(
        f"tests/cluster/programs/{module.name}/go.mod does not require {wanted}; run `go get` in it"
    )


def release(product: str) -> str:
    """The version as its makers print it; Knative's module 0.N belongs to its release 1.(N-27)."""
    if not PRODUCTS[product].startswith("knative.dev/"):
        return version(product).removeprefix("v")
    _, minor, patch = version(product).removeprefix("v").split(".")
    return f"1.{int(minor) - 27}.{patch}"


def source(product: str, package: str) -> Path:
    """The folder of the module that holds `package`, in Go's module cache; fetched if need be.

    Asking for a package and not for its module needs no more from the module proxy than the build did.
    """
    listed = output(["go", "list", "-find", "-f", "{{.Module.Dir}}", package], cwd=_module(product))
    return Path(listed.strip())
