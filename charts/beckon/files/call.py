"""Call the test's tool through agent, shim and Broker until it answers: `python call.py URL`.

The EventType was applied a moment ago, so for a while no component knows the tool; an event that a
Broker takes before its Triggers are ready is lost. Both end by themselves.
"""

import json
import os
import secrets
import sys
import time
import urllib.error
import urllib.request

SECONDS = 120
ATTEMPT_SECONDS = 15


def call(url: str, number: int) -> object:
    """Return the tool's result; raise `OSError` or `ValueError` where there is none."""
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get("BECKON_API_KEY"):
        headers["Authorization"] = f"Bearer {key}"
    request = urllib.request.Request(  # noqa: S310 the URL is the chart's own
        url, json.dumps({"number": number}).encode(), headers
    )
    with urllib.request.urlopen(request, timeout=ATTEMPT_SECONDS) as response:  # noqa: S310 the chart's own URL
        return json.load(response)["result"]


def why(error: Exception) -> str:
    """Return what an answer says, or why there was none."""
    if isinstance(error, urllib.error.HTTPError):
        return f"{error.code}: {error.read(2000).decode(errors='replace')}"
    return str(error)


def say(line: str) -> None:
    """Write a line to the log of the pod."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(url: str) -> int:
    """Return 0 once the tool has answered right, 1 where it never does."""
    number, end, problem = secrets.randbelow(1_000_000), time.monotonic() + SECONDS, ""
    while time.monotonic() < end:
        try:
            result = call(url, number)
        except (OSError, ValueError) as error:
            found = why(error)
            if found != problem:
                problem = found
                say(problem)
            time.sleep(1)
            continue
        say(f"twice({number}) = {json.dumps(result)}")
        return 0 if result == {"twice": 2 * number} else 1
    say(f"no answer within {SECONDS} seconds")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
