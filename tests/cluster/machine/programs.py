"""Building the Go programs: one module a product, the ordinary `go` command, a cache outside the checkout."""

import hashlib
import shutil
from pathlib import Path

from tests.cluster.machine.commands import ClusterError, Step, output, say
from tests.cluster.machine.places import PROGRAMS, Places

PRODUCTS = {
    "kubernetes": "k8s.io/kubernetes",
    "coredns": "github.com/coredns/coredns",
    "eventing": "knative.dev/eventing",
    "serving": "knative.dev/serving",
    "helm": "helm.sh/helm/v3",
    "kube-score": "github.com/zegl/kube-score",
}
STAMP = "built-from"
# Static programs run in empty images; -buildvcs=false keeps the result independent of this checkout's commit.
ENVIRONMENT = {"CGO_ENABLED": "0"}
FLAGS = ("-trimpath", "-buildvcs=false")


def build(places: Places, product: str) -> Path:
    """Build the programs of `product` unless the cache has them from the same files and flags.

    Returns their folder; raises `ClusterError` when there is no `go`, or when the build fails.
    """
    module, folder = PROGRAMS / product, places.cache / "bin" / product
    flags = (*FLAGS, "-ldflags", linker_flags(version(product)) if product == "kubernetes" else "-s -w")
    stamp = fingerprint(module, flags)
    if (folder / STAMP).is_file() and (folder / STAMP).read_text() == stamp:
        return folder
    if not shutil.which("go"):
        raise ClusterError(
            "building the cluster's programs needs `go`: install Go from go.dev/dl and put it on PATH"
        )
    say(f"programs: building {product} {version(product)} (minutes when Go has never built it here)")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / STAMP).unlink(missing_ok=True)
    try:
        with Step(f"programs: {product} built"):
            output(["go", "build", *flags, "-o", f"{folder}/", "tool"], cwd=module, environment=ENVIRONMENT)
    except ClusterError as problem:
        cure = "; install a newer Go from go.dev/dl" if "requires go >=" in str(problem) else ""
        raise ClusterError(f"{problem}{cure}") from None
    (folder / STAMP).write_text(stamp)
    return folder


def fingerprint(module: Path, flags: tuple[str, ...]) -> str:
    """What the programs are made of, as one line."""
    digest = hashlib.sha256(repr((flags, sorted(ENVIRONMENT.items()))).encode())
    for name in ("go.mod", "go.sum"):
        digest.update((module / name).read_bytes())
    return digest.hexdigest()


def linker_flags(kubernetes: str) -> str:
    """Without a version in it the API server reports v0.0.0, and Knative refuses all before v1.34."""
    major, minor, _ = kubernetes.removeprefix("v").split(".")
    values = {"gitVersion": kubernetes, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return "-s -w " + " ".join(f"-X k8s.io/component-base/version.{k}={v}" for k, v in values.items())


def version(product: str) -> str:
    """The version that the product's `go.mod` asks for, such as `v1.34.4`."""
    wanted = PRODUCTS[product]
    for line in (PROGRAMS / product / "go.mod").read_text().splitlines():
        words = line.removeprefix("require").split()
        if words[:1] == [wanted] and len(words) > 1:
            return words[1]
    raise ClusterError(
        f"tests/cluster/programs/{product}/go.mod does not require {wanted}; run `go get` in it"
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
    listed = output(["go", "list", "-find", "-f", "{{.Module.Dir}}", package], cwd=PROGRAMS / product)
    return Path(listed.strip())
