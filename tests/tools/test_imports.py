"""What a tool's process loads: eight tools run on a laptop, so what one does not need counts eight times."""

import subprocess
import sys

# Loaded by those who use it: events that are no reply, manifests, the adapter, a collector, shared outcomes.
NOT_FOR_ALL = (
    "aiohttp",
    "beckon_adapter",
    "beckon_tools.manifests",
    "fastapi",
    "httpx",
    "httpx2",
    "jsonschema",
    "kubernetes",
    "opentelemetry.sdk",
    "redis",
    "rich",
    "sqlalchemy",
    "yaml",
)


def test_a_tool_begins_without_what_few_tools_need() -> None:
    modules = "beckon_tools.__main__, beckon_tools.shipped.calculator"
    code = f"import sys, {modules}; print(sorted(sys.modules.keys() & set({NOT_FOR_ALL})))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
