"""The webhook over HTTPS, with everything but the API server."""

import asyncio
import gzip
import io
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPSConnection

import aiohttp
import pytest
from cryptography import x509

from beckon_operator.webhook.app import MAX_BODY, WebhookService
from beckon_operator.webhook.certificates import read_certificate_set
from beckon_operator.webhook.cluster import StoredSecret, Trust, WebhookCluster
from beckon_operator.webhook.rotation import RotationStep, take_step
from beckon_operator.webhook.settings import WebhookSettings
from beckon_runtime.certificates import server_context
from beckon_runtime.process import CannotListen
from tests.operator.webhook.asking import TEXT, event_type, request
from tests.operator.webhook.objects import Objects
from tests.patience import PATIENCE

REVIEW = json.dumps(request(event_type(TEXT)))
JSON = {"Content-Type": "application/json"}


def configured(**changes: object) -> WebhookSettings:
    return WebhookSettings.model_validate(
        {"port": 0, "health_port": 0, "poll_seconds": 0.01, "drain_seconds": 0, "extra_names": "127.0.0.1"}
        | changes
    )


@dataclass(slots=True)
class Running:
    service: WebhookService
    objects: Objects
    stop: asyncio.Event
    ended: asyncio.Task[None]

    def trust(self) -> ssl.SSLContext:
        """Return what the API server trusts, strictly by the standard."""
        context = ssl.create_default_context(cadata=self.objects.bundles[-1][1].decode())
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    def client(self) -> aiohttp.ClientSession:
        """Return a client with that trust."""
        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=self.trust()))

    def connection(self) -> closing[HTTPSConnection]:
        """Return one connection with that trust, which is kept open."""
        host = self.service.url.removeprefix("https://")
        return closing(HTTPSConnection(host, timeout=PATIENCE, context=self.trust()))

    async def post(self, body: str) -> aiohttp.ClientResponse:
        """Send a body as a review over a connection of its own; the answer has been read."""
        url = self.service.url + "/mutate"
        async with self.client() as client, client.post(url, data=body, headers=JSON) as answer:
            await answer.read()
            return answer

    async def ask(self, path: str) -> aiohttp.ClientResponse:
        """Ask for health or metrics; the answer has been read."""
        url = self.service.health_url + path
        async with aiohttp.ClientSession() as client, client.get(url) as answer:
            await answer.read()
            return answer

    async def until_ready(self, status: int) -> str:
        found = await self.ask("/readyz")
        async with asyncio.timeout(PATIENCE):
            while found.status != status:
                found = await self.ask("/readyz")
        return await found.text()


@asynccontextmanager
async def running(objects: Objects | None = None, **changes: object) -> AsyncIterator[Running]:
    objects = objects or Objects(datetime.now(UTC))
    service, stop = WebhookService(configured(**changes), objects), asyncio.Event()
    ended = asyncio.create_task(service.run_until(stop))
    try:
        async with asyncio.timeout(PATIENCE):
            while not service.health_url:  # noqa: ASYNC110 - a service has no event for the start of listening
                await asyncio.sleep(0.01)
        yield Running(service, objects, stop, ended)
    finally:
        stop.set()
        await asyncio.wait_for(ended, PATIENCE)


@pytest.fixture
async def webhook() -> AsyncIterator[Running]:
    async with running() as found:
        await found.until_ready(200)
        yield found


async def test_a_review_is_answered_over_the_trust_that_the_webhook_established(webhook: Running) -> None:
    answer = await webhook.post(REVIEW)

    assert answer.status == 200
    assert answer.content_type == "application/json"
    assert (await answer.json())["response"]["patchType"] == "JSONPatch"


@pytest.mark.parametrize(
    ("sent", "kind", "body", "status"),
    [
        ("POST /mutate", "application/json", "{", 400),
        ("POST /mutate", "application/json", "[" * 1000, 400),
        ("POST /mutate", "text/plain", REVIEW, 415),
        ("POST /mutate", "application/json", "x" * (MAX_BODY + 1), 413),
        ("GET /mutate", "application/json", "", 405),
        ("DELETE /mutate", "application/json", "", 405),
        ("POST /", "application/json", REVIEW, 404),
        ("GET /metrics", "application/json", "", 404),
    ],
)
async def test_strangers_get_a_problem_and_no_trace(
    webhook: Running, sent: str, kind: str, body: str, status: int
) -> None:
    method, path = sent.split()
    url, headers, data = webhook.service.url + path, {"Content-Type": kind}, io.BytesIO(body.encode())
    async with webhook.client() as client, client.request(method, url, data=data, headers=headers) as answer:
        text = await answer.text()

    assert answer.status == status
    assert answer.content_type == "application/problem+json"
    assert json.loads(text)["detail"]
    assert "Traceback" not in text
    assert "aiohttp" not in text + str(answer.headers)


async def test_a_review_that_is_packed_is_not_unpacked(webhook: Running) -> None:
    url, headers = webhook.service.url + "/mutate", {**JSON, "Content-Encoding": "gzip"}
    packed = gzip.compress(REVIEW.encode())
    async with webhook.client() as client, client.post(url, data=packed, headers=headers) as answer:
        assert answer.status == 400


async def test_what_is_counted_can_be_queried(webhook: Running) -> None:
    await webhook.post(REVIEW)
    await webhook.post("{")

    lines = (await (await webhook.ask("/metrics")).text()).splitlines()

    assert 'beckon_webhook_reviews_total{outcome="kept"} 1.0' in lines
    assert 'beckon_webhook_reviews_total{outcome="malformed"} 1.0' in lines
    assert "beckon_webhook_trusted 1.0" in lines
    ends = [line for line in lines if line.startswith("beckon_webhook_certificate_expiry_timestamp_seconds{")]
    now = datetime.now(UTC).timestamp()
    assert [89 < (float(line.split()[-1]) - now) / 86_400 < 5 * 365 for line in ends] == [True, True]


async def test_without_a_configuration_it_is_not_ready_and_says_so() -> None:
    class Unconfigured(Objects):
        async def read_trust(self) -> Trust:
            return Trust({}, "1")

    async with running(Unconfigured(datetime.now(UTC))) as webhook:
        assert "MutatingWebhookConfiguration" in await webhook.until_ready(503)
        assert (await webhook.ask("/healthz")).status == 200


def serial_requested(connection: HTTPSConnection) -> int:
    """Ask for a review; return the serial number of the certificate behind the connection."""
    connection.request("POST", "/mutate", REVIEW, JSON)
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 200
    return x509.load_der_x509_certificate(connection.sock.getpeercert(binary_form=True) or b"").serial_number


async def test_a_new_certificate_is_served_and_open_connections_stay(webhook: Running) -> None:
    held = read_certificate_set(webhook.objects.secret.data)
    assert held is not None
    renewed = take_step(RotationStep.RENEW, held, configured().rotation_policy(), datetime.now(UTC))
    serials = {pair: pair.serving.certificate.serial_number for pair in (held, renewed)}
    with webhook.connection() as before:
        assert await asyncio.to_thread(serial_requested, before) == serials[held]
        webhook.objects.secret = StoredSecret(renewed.to_secret(), "99")
        async with asyncio.timeout(PATIENCE):
            found = serials[held]
            while found == serials[held]:
                with webhook.connection() as after:
                    found = await asyncio.to_thread(serial_requested, after)
        assert found == serials[renewed]
        assert await asyncio.to_thread(serial_requested, before) == serials[held]


async def test_during_its_shutdown_it_is_not_ready_and_still_answers() -> None:
    async with running(drain_seconds=0.5) as webhook:
        await webhook.until_ready(200)
        webhook.stop.set()
        assert "stopping" in await webhook.until_ready(503)
        answer = await webhook.post(REVIEW)
        assert (answer.status, answer.headers["Connection"]) == (200, "close")
        await asyncio.wait_for(webhook.ended, PATIENCE)


@pytest.mark.parametrize(
    ("setting", "variable"), [("port", "BECKON_PORT"), ("health_port", "BECKON_WEBHOOK_HEALTH_PORT")]
)
async def test_a_port_that_is_taken_is_named(webhook: Running, setting: str, variable: str) -> None:
    taken = int(webhook.service.health_url.rpartition(":")[2])
    settings = configured(**{setting: taken})

    with pytest.raises(CannotListen, match=rf":{taken}: .*{variable}"):
        await asyncio.wait_for(WebhookService(settings, webhook.objects).run_until(asyncio.Event()), PATIENCE)


async def test_whatever_fails_in_the_upkeep_what_was_loaded_is_served_on(
    webhook: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> StoredSecret:
        raise RuntimeError("a fault")

    monkeypatch.setattr(webhook.objects, "read_secret", fail)
    async with asyncio.timeout(PATIENCE):
        while "a fault" not in caplog.text:
            assert (await webhook.post(REVIEW)).status == 200

    assert (await webhook.post(REVIEW)).status == 200
    assert (await webhook.ask("/readyz")).status == 200
    assert [record.exc_info is not None for record in caplog.records if "a fault" in record.message] == [True]


def test_old_protocols_are_refused() -> None:
    assert server_context().minimum_version is ssl.TLSVersion.TLSv1_2


def test_the_double_has_no_other_face_than_the_real_one() -> None:
    assert {name for name in vars(Objects) if name in vars(WebhookCluster)} >= {
        "read_trust",
        "read_secret",
        "write_secret",
        "publish_bundle",
    }
