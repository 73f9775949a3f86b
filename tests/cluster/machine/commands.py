"""Running other programs, waiting with a bound, and telling the user what happens."""

import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

POLL_SECONDS = 0.2
MAX_REPORTED_CHARACTERS = 600


class ClusterError(Exception):
    """A step that cannot be done; the message is one line, with cause and cure."""


def say(line: str) -> None:
    """Print one line at once, so that a long step is seen while it runs."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def output(
    command: Sequence[str | Path],
    *,
    stdin: bytes | None = None,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run `command` and return what it printed; raise `ClusterError` with its complaint if it fails."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            cwd=cwd,
            env={**os.environ, **(environment or {})},
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        raise ClusterError(f"the program {words[0]} is not on this machine") from None
    if done.returncode:
        raise ClusterError(f"`{shown(words)}` failed: {complaint(done.stderr or done.stdout)}")
    return done.stdout.decode(errors="replace")


def follow(
    command: Sequence[str | Path],
    on_line: Callable[[str], None],
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Run `command`, and pass each line of its standard error to `on_line` when it comes.

    Raises `ClusterError` with its last lines if it fails. Standard output is dropped. An exception, such as
    that of Ctrl-C, ends the command, too.
    """
    words = [str(word) for word in command]
    last: deque[str] = deque(maxlen=20)
    with subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        text=True,
        errors="replace",
    ) as process:
        try:
            for line in process.stderr or ():
                last.append(line)
                on_line(line.strip())
        except BaseException:
            process.terminate()
            raise
    if process.returncode:
        raise ClusterError(f"`{shown(words)}` failed: {complaint(' '.join(last).encode())}")


def succeeds(command: Sequence[str | Path]) -> bool:
    """Whether `command` exists and ends well; what it prints is dropped."""
    try:
        output(command)
    except ClusterError:
        return False
    return True


def shown(words: Sequence[str]) -> str:
    """A command line short enough for a message."""
    line = " ".join(words)
    return line if len(line) <= 120 else line[:117] + "..."


def complaint(printed: bytes) -> str:
    """The end of what a failed program printed, on one line."""
    return " ".join(printed.decode(errors="replace").split())[-MAX_REPORTED_CHARACTERS:] or "no output"


def wait_until(condition: Callable[[], bool], seconds: float, problem: Callable[[], str]) -> None:
    """Poll `condition` until it holds; after `seconds` raise `ClusterError` with the text of `problem`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise ClusterError(problem())
        time.sleep(POLL_SECONDS)


class Step:
    """A step of the start: on leaving it well, a line with the seconds it took."""

    def __init__(self, done: str) -> None:
        self.done = done

    def __enter__(self) -> None:
        self.started = time.monotonic()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            say(f"{self.done} ({time.monotonic() - self.started:.0f} s)")
