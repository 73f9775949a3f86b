"""What the agent's process loads: what a laptop does not need costs no memory there."""

import subprocess
import sys

# Each of 1 to 90 MB, and loaded when used: a cluster, MCP, A2A, AG-UI, PostgreSQL, an issuer, a collector.
NOT_FOR_ALL = (
    "a2a",
    "ag_ui",
    "alembic",
    "asyncpg",
    "cryptography",
    "google.protobuf",
    "httpx2",
    "json_repair",
    "jwt",
    "kubernetes",
    "lark",
    "mcp",
    "openai",
    "opentelemetry.sdk",
    "sqlalchemy.dialects.postgresql",
    "sqlalchemy.orm",
    "Stemmer",
)


def loaded(module: str, names: tuple[str, ...]) -> str:
    """Return which of these modules the import of another one brings, in a process of its own."""
    code = f"import sys, {module}; print(sorted(sys.modules.keys() & set({names})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_agent_begins_without_what_few_need() -> None:
    assert loaded("beckon_agent.__main__", NOT_FOR_ALL) == "[]"
