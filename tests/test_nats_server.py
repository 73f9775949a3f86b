"""The nats-server of the tests: skipped with the cure, required in CI, and itself again after a kill."""

import socket
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from tests import nats_server as module
from tests.cluster.machine import programs
from tests.cluster.machine.places import Places
from tests.nats_server import CURE, NatsServer


def converse(server: NatsServer, *requests: bytes) -> Iterator[bytes]:
    """Send requests of NATS' text protocol one by one, and give the line that each one has for an answer."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        answers = connection.makefile("rb")
        yield answers.readline()
        connection.sendall(b'CONNECT {"verbose":false}\r\nSUB inbox 1\r\n')
        for request in requests:
            connection.sendall(request)
            assert answers.readline().startswith(b"MSG inbox 1 ")
            yield answers.readline()


def request(subject: str, body: bytes) -> bytes:
    """Return a message whose answer goes to the subject `inbox`."""
    return f"PUB {subject} inbox {len(body)}\r\n".encode() + body + b"\r\n"


def test_what_it_acknowledged_is_there_after_a_kill_at_the_same_address(nats_server: NatsServer) -> None:
    stream = orjson.dumps({"name": "S", "subjects": ["s.>"], "storage": "file"})
    info, made, stored = converse(
        nats_server, request("$JS.API.STREAM.CREATE.S", stream), request("s.one", b"hello")
    )
    port = nats_server.port

    nats_server.kill()
    with pytest.raises(ConnectionRefusedError):
        list(converse(nats_server))
    nats_server.start()
    _, found = converse(nats_server, request("$JS.API.STREAM.INFO.S", b""))

    assert orjson.loads(info.removeprefix(b"INFO "))["jetstream"] is True
    assert "error" not in orjson.loads(made)
    assert orjson.loads(stored) == {"stream": "S", "seq": 1}
    assert orjson.loads(found)["state"]["messages"] == 1
    assert nats_server.port == port


def test_a_test_without_the_program_is_skipped_with_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "find_built", lambda *_: None)
    monkeypatch.delenv("CI", raising=False)

    with pytest.raises(pytest.skip.Exception, match=f"^{CURE[:40]}"):
        module.program()


def test_in_ci_a_test_without_the_program_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "find_built", lambda *_: None)
    monkeypatch.setenv("CI", "true")

    with pytest.raises(pytest.fail.Exception, match=f"^{CURE[:40]}"):
        module.program()


def test_a_program_of_another_version_is_not_used(tmp_path: Path) -> None:
    where = Places(tmp_path, tmp_path / "state")
    folder = tmp_path / "bin" / "nats-server"
    folder.mkdir(parents=True)
    stamp = folder / programs.STAMP

    assert programs.find_built(where, "nats-server") is None
    stamp.write_text("of another version")
    assert programs.find_built(where, "nats-server") is None
    stamp.write_text(programs.current_stamp("nats-server"))
    assert programs.find_built(where, "nats-server") == folder
