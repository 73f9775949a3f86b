"""Chart and images from a registry: pushed, pulled back the same, and installed with a pull secret."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from supply_chain.chart import package_chart, push_chart
from supply_chain.release import current_version, to_semantic
from tests.cluster.chart.charts import KUBERNETES, Chart, Refused, by_key, read_documents
from tests.cluster.images.building import built_images
from tests.cluster.install.releases import RELEASE, SMALL, Helm
from tests.cluster.machine import packages
from tests.cluster.machine.places import POINTER
from tests.docs.blocks import ROOT, commands_of
from tests.registry import PACKAGES, Registry, running_registry

PULL_SECRET = "beckon-registry"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """A registry on loopback; Debian's packages bring it."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        pytest.skip("the registry is a package of Debian, and installing it needs root")
    packages.install(PACKAGES)
    with running_registry(tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture(scope="module")
def package(chart: Chart, registry: Registry, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packaged chart, whose images are those of the registry; pushed there."""
    packaged = package_chart(
        tmp_path_factory.mktemp("package"), f"{registry.host}/team", "", helm=str(chart.helm)
    )
    digest = push_chart(packaged, f"oci://{registry.host}/team/charts", str(chart.helm), *login(registry))
    assert digest == registry.read_digest("team/charts/beckon", to_semantic(current_version()))
    return packaged


def login(registry: Registry) -> tuple[str, ...]:
    return ("--plain-http", "--registry-config", str(registry.login))


def address(registry: Registry) -> tuple[str, ...]:
    return (f"oci://{registry.host}/team/charts/beckon", "--version", to_semantic(current_version()))


def test_a_pulled_chart_is_the_one_that_was_pushed(
    chart: Chart, registry: Registry, package: Path, tmp_path: Path
) -> None:
    chart.run("pull", *address(registry), *login(registry), "--destination", str(tmp_path))

    assert (tmp_path / package.name).read_bytes() == package.read_bytes()


def test_the_chart_of_the_registry_renders_what_the_checkout_does(
    chart: Chart, registry: Registry, package: Path
) -> None:
    words = ("template", RELEASE, *address(registry), *login(registry), "--namespace", "beckon")
    pulled = chart.run(*words, "--kube-version", KUBERNETES, "--skip-tests")

    assert package.exists()
    expected = chart.render({"image": {"registry": f"{registry.host}/team"}})
    assert by_key(read_documents(pulled)) == expected
    assert f"{registry.host}/team/beckon-agent:{current_version()}" in pulled


def test_the_chart_of_the_registry_refuses_unknown_values(
    chart: Chart, registry: Registry, package: Path
) -> None:
    assert package.exists()
    with pytest.raises(Refused, match="nonsense"):
        chart.run("template", RELEASE, *address(registry), *login(registry), given={"nonsense": True})


def test_the_registry_gives_nothing_without_the_password(
    chart: Chart, registry: Registry, package: Path, tmp_path: Path
) -> None:
    no_one = tmp_path / "login.json"
    no_one.write_text(json.dumps({"auths": {}}))

    assert package.exists()
    with pytest.raises(Refused, match=r"401|unauthorized|basic credential"):
        chart.run("pull", *address(registry), "--plain-http", "--registry-config", str(no_one))


@pytest.fixture(scope="module")
def pushed(registry: Registry) -> Mapping[str, Path]:
    """The images in the registry, by name."""
    tars = built_images()
    for image, tar in tars.items():
        registry.push_image(tar, f"team/beckon-{image}", current_version())
    return tars


@pytest.mark.timeout(1200)
def test_a_pushed_image_has_its_configuration(registry: Registry, pushed: Mapping[str, Path]) -> None:
    expected = ("65532:65532", current_version())

    for image in pushed:
        configuration = registry.inspect_image(f"team/beckon-{image}", current_version())["config"]
        version = configuration["Labels"]["org.opencontainers.image.version"]
        assert (configuration["User"], version) == expected, image


@pytest.mark.timeout(1500)
def test_the_kubelet_pulls_with_the_secret(
    helm: Helm, registry: Registry, package: Path, pushed: Mapping[str, Path]
) -> None:
    if not POINTER.exists():
        pytest.skip("the nodes of a cluster elsewhere do not reach a registry on loopback")
    kube, name = helm.kube.within("beckon"), f"oci://{registry.host}/team/charts/beckon"
    assert package.exists()
    assert pushed
    helm.kube.run("create", "namespace", "beckon")
    try:
        kube.run(
            "create",
            "secret",
            "generic",
            PULL_SECRET,
            "--type=kubernetes.io/dockerconfigjson",
            f"--from-file=.dockerconfigjson={registry.login}",
        )
        values = {**SMALL, "image": {"pullPolicy": "Always", "pullSecrets": [PULL_SECRET]}}
        # The README's commands, with what this registry needs: no TLS, a password, a Secret for the nodes.
        install, test = [one for one in commands_of(ROOT / "README.md", "release") if one.startswith("helm ")]
        words = install.replace("$REGISTRY", f"{registry.host}/team").split()[1:]
        assert name in words
        helm.run(*words, *login(registry), "--timeout=5m", values=values)
        helm.run(*test.split()[1:], "--timeout=4m")

        ran = {
            status["image"]
            for pod in kube.list_objects("pods", "app.kubernetes.io/name=beckon")
            for status in pod["status"]["containerStatuses"]
        }
        assert ran
        assert all(image.startswith(f"{registry.host}/team/beckon-") for image in ran)
    finally:
        helm.remove()
