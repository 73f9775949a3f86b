from pathlib import Path

from aiohttp import web

from tests.broker.broker_process import broker, delivery, event, running_broker, trigger
from tests.broker.subscribers import Gate, Request, subscriber
from tests.patience import eventually


async def test_the_status_shows_brokers_triggers_and_the_queue(tmp_path: Path) -> None:
    held = Gate()
    async with (
        subscriber(held) as tool,
        running_broker(
            tmp_path,
            broker("orders", "shop"),
            trigger("t", tool.url, delivery=delivery(1, "http://127.0.0.1:1/dead")),
        ) as running,
    ):
        await running.send(event("a", data=b"x" * 1000))
        await running.send(event("b", data=b"x" * 1000))
        await tool.wait(2)
        status = await running.status()
        held.open()

    assert "in memory" in status["durability"]
    assert status["brokers"] == [
        {
            "namespace": "shop",
            "name": "orders",
            "ready": True,
            "reason": "",
            "message": "",
            "url": f"{running.url}/shop/orders",
            "triggers": [],
        },
        {
            "namespace": "default",
            "name": "default",
            "ready": True,
            "reason": "",
            "message": "",
            "url": f"{running.url}/default/default",
            "triggers": ["t"],
        },
    ]
    assert status["triggers"] == [
        {
            "namespace": "default",
            "name": "t",
            "broker": "default",
            "ready": True,
            "reason": "",
            "message": "",
            "subscriber": tool.url,
            "deadLetterSink": "http://127.0.0.1:1/dead",
            "queued": 2,
        }
    ]
    assert (status["queue"]["deliveries"], status["queue"]["events"]) == (2, 2)
    assert status["queue"]["bytes"] >= 2000


async def test_the_metrics_count_what_happened(tmp_path: Path) -> None:
    async def answer(request: Request) -> web.Response:
        return web.Response(status=400 if request.event.id == "bad" else 200)

    async with (
        subscriber(answer) as tool,
        subscriber() as sink,
        running_broker(tmp_path, trigger("t", tool.url, delivery=delivery(1, sink.url))) as running,
    ):
        tool.script = [web.Response(status=503)]
        await running.send(event("good"))
        await tool.wait(2)
        await running.send(event("bad"))
        await running.request("POST", "/default/nowhere")

        async def counted() -> bool:
            return await running.metric("dead_letters_total", trigger="t") == 1

        await eventually(counted)
        found = {
            "accepted": await running.metric("events_accepted_total", broker="default"),
            "refused": await running.metric("events_refused_total", reason="unknown-broker"),
            "delivered": await running.metric("deliveries_total", trigger="t"),
            "retried": await running.metric("retries_total", trigger="t"),
            "dropped": await running.metric("events_dropped_total"),
            "queued": await running.metric("queue_length", trigger="t"),
        }

    assert found == {"accepted": 2, "refused": 1, "delivered": 1, "retried": 1, "dropped": 0, "queued": 0}


async def test_health_and_readiness_answer(tmp_path: Path) -> None:
    async with running_broker(tmp_path, broker()) as running:
        answers = [
            (await running.request("GET", path)).status for path in ("/healthz", "/readyz", "/metrics")
        ]

    assert answers == [200, 200, 200]
