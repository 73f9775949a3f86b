"""The spans that stand around the shim's handlers."""

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from beckon_runtime.http_messages import Answer, HangUp, Piece, Request, Respond
from beckon_shim.spans import Traced
from tests.agent.telemetry.conftest import Spans, spans

__all__ = ["spans"]  # a fixture, found by its name

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01".encode()
EVENT = [(b"ce-id", b"call-1"), (b"ce-source", b"/agents/a"), (b"ce-type", b"weather"), (b"ce-other", b"x")]


class Answering:
    """A handler that answers at once, with so many pieces before the last; `requests` are those that came."""

    def __init__(self, status: int, outcome: str, pieces: int = 0) -> None:
        self._answer = Answer(status, [], b"", outcome)
        self._pieces = pieces
        self.requests: list[Request] = []

    def handle(self, request: Request, respond: Respond) -> HangUp | None:
        self.requests.append(request)
        for _ in range(self._pieces):
            respond(Piece([], b"more"))
        respond(Piece([], b"last", self._answer) if self._pieces else self._answer)
        return None

    def too_large(self, request: Request, limit: int) -> Answer:
        return self._answer


def ask(handler: Traced, *headers: tuple[bytes, bytes], method: str = "POST") -> list[Answer | Piece]:
    answers: list[Answer | Piece] = []
    handler.handle(Request(method, "/team/default", [*EVENT, *headers], b"{}"), answers.append)
    return answers


def test_a_call_is_a_span_of_its_route_and_what_is_sent_on_joins_it(spans: Spans) -> None:
    inner = Answering(200, "replied")

    answers = ask(Traced(inner, "/{namespace}/{broker}"), (b"traceparent", PARENT), (b"x-request-id", b"r-1"))

    span = spans.one("POST /{namespace}/{broker}")
    assert answers == [Answer(200, [], b"", "replied")]
    assert span.kind is SpanKind.SERVER
    assert span.parent is not None
    assert f"{span.parent.trace_id:032x}" == TRACE
    assert dict(span.attributes or {}) == {
        "http.request.method": "POST",
        "http.route": "/{namespace}/{broker}",
        "http.response.status_code": 200,
        "url.path": "/team/default",
        "messaging.system": "cloudevents",
        "cloudevents.event_id": "call-1",
        "cloudevents.event_source": "/agents/a",
        "cloudevents.event_type": "weather",
        "beckon.request_id": "r-1",
        "beckon.shim.outcome": "replied",
    }
    sent = [value for name, value in inner.requests[0].headers if name == b"traceparent"]
    assert span.context is not None
    assert sent == [f"00-{TRACE}-{span.context.span_id:016x}-01".encode()]
    assert [header for header in inner.requests[0].headers if header[0].startswith(b"ce-")] == EVENT


def test_a_call_that_fails_says_how(spans: Spans) -> None:
    ask(Traced(Answering(504, "timeout"), "/{namespace}/{broker}"))

    span = spans.one("POST /{namespace}/{broker}")
    assert span.status.status_code is StatusCode.ERROR
    assert (span.attributes or {})["error.type"] == "timeout"


def test_an_answer_in_pieces_is_one_span_up_to_its_last_piece(spans: Spans) -> None:
    answers = ask(Traced(Answering(502, "undeliverable", pieces=2), "/{namespace}/{broker}"))

    span = spans.one("POST /{namespace}/{broker}")
    assert len(answers) == 3
    assert (span.attributes or {})["beckon.shim.outcome"] == "undeliverable"
    assert span.status.status_code is StatusCode.ERROR


def test_a_reply_whose_broker_sends_no_trace_is_in_that_of_its_event(spans: Spans) -> None:
    ask(Traced(Answering(202, "accepted")), (b"ce-traceparent", PARENT))

    span = spans.one("POST /team/default")
    assert span.parent is not None
    assert f"{span.parent.trace_id:032x}" == TRACE


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_only_events_are_traced(spans: Spans, method: str) -> None:
    assert len(ask(Traced(Answering(200, "ready")), method=method)) == 1
    assert spans.names == []
