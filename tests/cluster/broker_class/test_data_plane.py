"""Events through a Broker of the class on a real cluster: the cases of Knative's suite for Broker classes.

knative.dev/eventing, test/rekt/features/broker; docs/conformance.yaml names the test of each of its features.
"""

import base64
from collections import Counter
from collections.abc import Callable

import pytest
from aiohttp import web

from beckon_contract.cloudevents.events import CloudEvent, to_structured
from tests.broker.subscribers import Answerer, Request, Subscriber, event_response
from tests.cluster.broker_class.conftest import ServedClass
from tests.cluster.broker_class.objects import becomes, broker, trigger
from tests.cluster.kube import Kube, until
from tests.cluster.operator.account import free_port
from tests.cluster.operator.objects import Document, apply

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("alone")]

Start = Callable[..., Subscriber]
EVENT = {
    "ce-specversion": "1.0",
    "ce-id": "1",
    "ce-type": "test.call",
    "ce-source": "/test",
    "content-type": "application/json",
}
LINEAR = {"backoffPolicy": "linear", "backoffDelay": "PT0.1S"}


def to(subscriber: Subscriber, name: str = "weather", kind: str = "", **spec: object) -> Document:
    """Return a Trigger that leads to a subscriber, for events of one type or all."""
    selects = {"filter": {"attributes": {"type": kind}}} if kind else {}
    return trigger(name, {"uri": subscriber.url}, **selects, **spec)


def apply_ready(kube: Kube, *triggers: Document) -> None:
    """Apply Triggers and wait until they are ready."""
    apply(kube, *triggers)
    for one in triggers:
        becomes(kube, "trigger", one["metadata"]["name"], "True")


def wait_for(subscriber: Subscriber, count: int = 1) -> list[Request]:
    """Return the requests of a subscriber once there are so many."""
    until(lambda: len(subscriber.requests) >= count, within=60, what=f"{count} events")
    return subscriber.requests


def failing(times: int, status: int = 500) -> Answerer:
    """Return an answerer that refuses each event so many times, and then accepts it."""
    seen: Counter[str] = Counter()

    async def answer(request: Request) -> web.Response:
        seen[request.event.id] += 1
        return web.Response(status=status if seen[request.event.id] <= times else 202)

    return answer


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"ce-specversion": "0.3"}, 202),
        ({"ce-specversion": "19.0"}, 400),
        ({"ce-specversion": ""}, 400),
        ({"content-type": "application/xml"}, 202),
        ({"content-type": "application/vnd.apache.thrift.binary"}, 202),
    ],
)
def test_versions_and_content_types(
    ours: Kube, served: ServedClass, tool: Subscriber, given: dict[str, str], expected: int
) -> None:
    apply_ready(ours, to(tool))
    headers = {name: value for name, value in {**EVENT, **given}.items() if value}

    assert served.request(ours, headers, b"{}").status_code == expected
    assert served.request(ours, {**EVENT, "ce-id": "2"}, b"{}").status_code == 202
    wait_for(tool, 2 if expected == 202 else 1)
    if expected == 202:
        (found,) = [one for one in tool.requests if one.event.id == "1"]
        assert found.headers["ce-specversion"] == headers["ce-specversion"]
        assert (found.headers["content-type"], found.body) == (headers["content-type"], b"{}")


def test_a_structured_event_and_what_the_broker_adds(
    ours: Kube, served: ServedClass, tool: Subscriber
) -> None:
    apply_ready(ours, to(tool))
    sent = CloudEvent("1", "/s", "t", b'{"a":1}', "application/json", subject="x", extensions={"ext": "y"})
    headers, body = to_structured(sent)

    assert served.request(ours, dict(headers), body).status_code == 202
    (found,) = wait_for(tool)
    assert found.event.without("knativearrivaltime") == sent
    assert found.headers["prefer"] == "reply"
    assert found.headers["kn-namespace"] == ours.namespace


def test_another_method_is_refused(ours: Kube, served: ServedClass) -> None:
    assert served.request(ours, EVENT, b"", method="GET").status_code == 405


def test_an_event_reaches_every_trigger_that_matches(
    ours: Kube, served: ServedClass, subscribers: Start
) -> None:
    one, two, other = subscribers(), subscribers(), subscribers()
    apply_ready(
        ours, to(one, "one"), to(two, "two", "test.call"), to(two, "three"), to(other, "no", "other.type")
    )

    served.request(ours, EVENT, b"{}")
    wait_for(one)
    wait_for(two, 2)
    served.request(ours, {**EVENT, "ce-id": "2", "ce-type": "other.type"}, b"{}")
    wait_for(other)
    assert [found.event.id for found in other.requests] == ["2"]


def test_a_reply_is_an_event_of_the_broker(ours: Kube, served: ServedClass, subscribers: Start) -> None:
    long = b'{"msg":"' + b"X" * 36_000 + b'"}'

    async def transform(request: Request) -> web.Response:
        return event_response(
            CloudEvent(f"{request.event.id}-r", "/tool", "second", long, "application/json")
        )

    first, second, every = subscribers(transform), subscribers(), subscribers()
    apply_ready(ours, to(first, "first", "test.call"), to(second, "second", "second"), to(every, "every"))

    served.request(ours, EVENT, b"{}")
    (reply,) = wait_for(second)
    assert (reply.event.id, reply.body) == ("1-r", long)
    assert sorted(found.event.id for found in wait_for(every, 2)) == ["1", "1-r"]
    assert [found.event.id for found in first.requests] == ["1"]


def test_a_long_event_arrives_once(ours: Kube, served: ServedClass, tool: Subscriber) -> None:
    apply_ready(ours, to(tool))

    served.request(ours, {**EVENT, "content-type": "text/plain"}, b"X" * 36_864)
    served.request(ours, {**EVENT, "ce-id": "2"}, b"{}")
    wait_for(tool, 2)
    assert Counter(found.event.id for found in tool.requests) == {"1": 1, "2": 1}
    assert {len(found.body) for found in tool.requests} == {36_864, 2}


def test_deliveries_of_broker_and_trigger(served: ServedClass, namespace: Kube, subscribers: Start) -> None:
    """Four Triggers: with the Broker's delivery or their own, whose subscriber comes round in time or not."""
    sink, own_sink = subscribers(), subscribers()
    inherited, too_late = subscribers(failing(3)), subscribers(failing(4))
    own, own_too_late = subscribers(failing(2)), subscribers(failing(3))
    delivery = {"retry": 3, "deadLetterSink": {"uri": sink.url}, **LINEAR}
    replaced = {"retry": 2, "deadLetterSink": {"uri": own_sink.url}, **LINEAR}
    apply(namespace, broker(delivery=delivery))
    becomes(namespace, "broker", "default", "True")
    apply_ready(
        namespace,
        to(inherited, "inherited"),
        to(too_late, "too-late"),
        to(own, "own", delivery=replaced),
        to(own_too_late, "own-too-late", delivery=replaced),
    )

    served.request(namespace, EVENT, b"{}")
    (letter,), (own_letter,) = wait_for(sink), wait_for(own_sink)
    wait_for(inherited, 4)
    wait_for(own, 3)
    attempts = [len(found.requests) for found in (inherited, too_late, own, own_too_late)]
    assert attempts == [4, 4, 3, 3]
    destinations = [found.event.extensions["knativeerrordest"] for found in (letter, own_letter)]
    assert destinations == [too_late.url, own_too_late.url]


@pytest.mark.parametrize("text", ["", '{ "message": "catastrophic failure" }'])
def test_a_dead_letter_has_the_code_and_the_text(
    ours: Kube, served: ServedClass, subscribers: Start, text: str
) -> None:
    async def refuse(_: Request) -> web.Response:
        return web.Response(status=422, text=text)

    refusing, sink = subscribers(refuse), subscribers()
    apply_ready(ours, to(refusing, delivery={"retry": 5, "deadLetterSink": {"uri": sink.url}, **LINEAR}))

    served.request(ours, EVENT, b"{}")
    (letter,) = wait_for(sink)
    found = letter.event.extensions
    assert (found["knativeerrordest"], found["knativeerrorcode"]) == (refusing.url, "422")
    assert found.get("knativeerrordata", "") == base64.b64encode(text.encode()).decode()
    assert letter.headers["kn-namespace"] == ours.namespace
    assert len(refusing.requests) == 1


def test_a_subscriber_that_is_not_there_gives_a_dead_letter(
    ours: Kube, served: ServedClass, subscribers: Start
) -> None:
    sink, nowhere = subscribers(failing(2, status=503)), f"http://127.0.0.1:{free_port()}/"
    delivery = {"retry": 2, "deadLetterSink": {"uri": sink.url}, **LINEAR}
    apply_ready(ours, trigger("weather", {"uri": nowhere}, delivery=delivery))

    served.request(ours, EVENT, b"{}")
    letters = wait_for(sink, 3)  # the sink itself fails twice
    assert {found.event.id for found in letters} == {"1"}
    assert {found.event.extensions["knativeerrordest"] for found in letters} == {nowhere}


def test_structured_delivery_where_the_trigger_asks_for_it(
    ours: Kube, served: ServedClass, tool: Subscriber
) -> None:
    apply_ready(ours, to(tool, delivery={"format": "json"}))

    served.request(ours, EVENT, b"{}")
    (found,) = wait_for(tool)
    assert found.headers["content-type"].startswith("application/cloudevents+json")
