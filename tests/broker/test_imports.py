"""What a broker in memory loads: the client of NATS is for the one that stores its events there."""

import subprocess
import sys

NOT_IN_MEMORY = ("nats", "opentelemetry.sdk", "sqlalchemy")


def test_a_broker_in_memory_starts_without_the_client_of_nats() -> None:
    code = f"import sys, beckon_broker.__main__; print(sorted(sys.modules.keys() & set({NOT_IN_MEMORY})))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
