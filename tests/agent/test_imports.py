"""What the agent's process loads: what a laptop does not need costs no memory there."""

import subprocess
import sys

# Each of 1 to 90 MB, and loaded by those who use it: a cluster, MCP, PostgreSQL, an issuer, a collector.
NOT_FOR_ALL = (
    "alembic",
    "asyncpg",
    "cryptography",
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


def test_the_agent_begins_without_what_few_need() -> None:
    code = f"import sys, beckon_agent.__main__; print(sorted(sys.modules.keys() & set({NOT_FOR_ALL})))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
