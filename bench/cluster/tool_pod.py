"""Starting the tool that the benchmarks call, as the Service `tool`."""

from pathlib import Path
from string import Template

from tests.cluster.images.inputs import reference
from tests.cluster.kube import Kube

IMAGE = reference("tools")
_HERE = Path(__file__).parent


def start_tool(kube: Kube, image: str = IMAGE) -> None:
    """Start it; the image must have Python and uvicorn."""
    code = _HERE / "echo_tool.py"
    kube.apply(kube.run("create", "configmap", "tool", f"--from-file={code}", "--dry-run=client", "-oyaml"))
    kube.apply(Template((_HERE / "echo_tool.yaml").read_text()).substitute(image=image))
    kube.run("rollout", "status", "deployment/tool", "--timeout=120s", timeout=130)
