"""The Triggers for replies and reports: made for Brokers that carry calls, and kept as they should be."""

import pytest
from aiohttp import web

from tests.operator.documents import NAMESPACE, SHIM, ready
from tests.operator.reply_path.reply_platform import (
    LEADS_TO_SHIM,
    PROGRESS,
    REPLIES,
    ReplyPlatform,
    reply_platform,
)
from tests.sources.api_server import ApiServer

MANAGED = {"app.kubernetes.io/managed-by": "beckon-operator"}
CESQL = "EXISTS replyid OR (EXISTS correlationid AND source NOT LIKE '/beckon/agents/%')"
STAMPED = {"attributes": {"replyid": ""}}


async def test_a_broker_whose_dead_letters_go_to_the_shim_gets_its_triggers() -> None:
    async with reply_platform() as platform:
        await platform.apply_broker()
        await platform.wait_for_triggers(REPLIES, PROGRESS)

    replies, progress = platform.trigger(REPLIES), platform.trigger(PROGRESS)
    broker = platform.api.objects["brokers", NAMESPACE, "default"]
    assert replies["metadata"]["labels"].items() >= MANAGED.items()
    assert [(one["kind"], one["uid"]) for one in replies["metadata"]["ownerReferences"]] == [
        ("Broker", broker["metadata"]["uid"])
    ]
    assert replies["spec"] == {
        "broker": "default",
        "filters": [{"cesql": CESQL}],
        "subscriber": {"uri": f"{SHIM}/replies"},
        "delivery": {
            "retry": 60,
            "backoffPolicy": "linear",
            "backoffDelay": "PT0.5S",
            "deadLetterSink": {"uri": f"{SHIM}/dead-letters"},
        },
    }
    assert progress["spec"] == {
        "broker": "default",
        "filters": [{"cesql": "EXISTS beckonprogress"}],
        "subscriber": {"uri": f"{SHIM}/progress"},
        "delivery": {"retry": 0},
    }


@pytest.mark.parametrize(
    ("broker_class", "passes"),
    [
        ("Kafka", {"filters": [{"cesql": CESQL}]}),
        ("RabbitMQBroker", {"filters": [{"cesql": CESQL}]}),
        ("Beckon", {"filter": STAMPED}),
    ],
)
async def test_the_filter_is_that_of_the_class(broker_class: str, passes: dict[str, object]) -> None:
    async with reply_platform() as platform:
        await platform.apply_broker(broker_class=broker_class)
        await platform.wait_for_triggers(REPLIES, PROGRESS)

        assert platform.trigger(REPLIES)["spec"].items() >= passes.items()
        assert ("filter" in platform.trigger(PROGRESS)["spec"]) == ("filter" in passes)


async def test_a_broker_of_another_class_under_the_same_name_gets_the_other_filter() -> None:
    async with reply_platform() as platform:
        await platform.apply_broker(broker_class="Kafka")
        await platform.wait_for_triggers(REPLIES, PROGRESS)
        await platform.api.delete("brokers", "default", NAMESPACE)
        await platform.apply_broker(broker_class="Beckon")
        await platform.wait_for(lambda: platform.trigger(REPLIES)["spec"].get("filter") == STAMPED)

        (owner,) = platform.trigger(REPLIES)["metadata"]["ownerReferences"]
        assert "filters" not in platform.trigger(REPLIES)["spec"]
        assert owner["uid"] == platform.api.objects["brokers", NAMESPACE, "default"]["metadata"]["uid"]


async def test_a_broker_gets_them_once_a_tool_is_called_through_it() -> None:
    async with reply_platform() as platform:
        await platform.apply_broker(spec={})
        await platform.settle()
        assert platform.triggers() == set()

        await platform.apply_tool()
        await platform.wait_for_triggers("weather", REPLIES, PROGRESS)
        await platform.publish_ready(REPLIES)
        await platform.wait_for(lambda: platform.condition("Answerable")[0] == "True")

        # An answer may come hours after its call.
        await platform.api.delete("eventtypes", "get.weather", NAMESPACE)
        await platform.settle()
        assert platform.triggers() == {"weather", REPLIES, PROGRESS}


async def test_a_tool_of_direct_calls_needs_no_triggers() -> None:
    async with reply_platform() as platform:
        await platform.apply_tool(**{"beckon.dev/dispatch": "direct"})
        await platform.apply_broker(spec={})
        await platform.settle()

        assert platform.triggers() == {"weather"}


async def test_attributes_that_eventtypes_name_for_replies_pass_too() -> None:
    async with reply_platform() as platform:
        await platform.apply_broker()
        await platform.wait_for_triggers(REPLIES, PROGRESS)
        await platform.apply_tool(**{"beckon.dev/reply-attribute": "responseid"})

        expression = CESQL.replace("EXISTS replyid", "EXISTS replyid OR EXISTS responseid")
        await platform.wait_for(
            lambda: platform.trigger(REPLIES)["spec"]["filters"] == [{"cesql": expression}]
        )


async def test_a_change_by_others_is_put_right() -> None:
    async with reply_platform() as platform:
        await platform.apply_broker()
        await platform.wait_for_triggers(REPLIES, PROGRESS)
        wanted = platform.trigger(REPLIES)["spec"]

        changed = {**wanted, "subscriber": {"uri": "http://elsewhere"}, "filter": STAMPED, "delivery": None}
        await platform.apply("triggers", REPLIES, changed)
        await platform.wait_for(lambda: platform.trigger(REPLIES)["spec"] == wanted)

        await platform.api.delete("triggers", PROGRESS, NAMESPACE)
        await platform.wait_for_triggers(REPLIES, PROGRESS)


async def test_what_knatives_defaults_add_is_no_change() -> None:
    async with reply_platform() as platform:
        await platform.apply_broker()
        await platform.wait_for_triggers(REPLIES, PROGRESS)
        before = len(platform.writes)
        for name in (REPLIES, PROGRESS):
            await platform.apply("triggers", name, {**platform.trigger(name)["spec"], "filter": {}}, ready())
        await platform.settle()

        assert [one for one in platform.writes[before:] if "default-beckon" in one[1]] == []


async def apply_other(platform: ReplyPlatform, status: str, **spec: object) -> None:
    base = {"broker": "default", "filters": [{"cesql": CESQL}], "subscriber": {"uri": f"{SHIM}/replies"}}
    await platform.apply("triggers", "mine", {**base, **spec}, ready(status))


async def test_a_trigger_of_others_that_does_the_work_is_left_alone() -> None:
    async with reply_platform() as platform:
        await apply_other(platform, "False")
        before = platform.trigger("mine")
        await platform.apply_broker()
        await platform.wait_for_triggers("mine", PROGRESS)
        await platform.settle()

        assert platform.triggers() == {"mine", PROGRESS}
        assert platform.trigger("mine") == before

        await platform.api.delete("triggers", "mine", NAMESPACE)
        await platform.wait_for_triggers(REPLIES, PROGRESS)


async def test_a_trigger_of_others_replaces_the_managed_one_once_it_is_ready() -> None:
    async with reply_platform() as platform:
        await platform.apply_broker()
        await platform.wait_for_triggers(REPLIES, PROGRESS)
        await apply_other(platform, "False")
        await platform.settle()
        assert REPLIES in platform.triggers()

        await platform.publish_ready("mine")
        await platform.wait_for_triggers("mine", PROGRESS)


@pytest.mark.parametrize(
    "spec",
    [
        {"filters": [{"cesql": "EXISTS responseid"}]},
        {"subscriber": {"uri": "http://elsewhere/replies"}},
        {"broker": "other"},
    ],
)
async def test_a_trigger_that_does_other_work_does_not_count(spec: dict[str, object]) -> None:
    async with reply_platform() as platform:
        await apply_other(platform, "True", **spec)
        await platform.apply_broker()

        await platform.wait_for_triggers("mine", REPLIES, PROGRESS)


async def test_without_its_label_a_trigger_is_one_of_others() -> None:
    async with reply_platform() as platform:
        await platform.apply_broker()
        await platform.wait_for_triggers(REPLIES, PROGRESS)
        own = {**platform.trigger(REPLIES)["spec"], "delivery": {"retry": 3}}
        await platform.apply("triggers", REPLIES, own, ready(), labels={})
        await platform.settle()

        assert platform.trigger(REPLIES)["spec"] == own


async def test_a_name_that_is_taken_is_reported() -> None:
    async with reply_platform() as platform:
        await platform.apply_tool()
        elsewhere = {"broker": "default", "subscriber": {"uri": "http://elsewhere"}}
        await platform.apply("triggers", REPLIES, elsewhere, ready())
        await platform.apply_broker()
        await platform.wait_for(lambda: platform.condition("Answerable")[1] == "ReplyTriggerNotWritten")

        message = platform.condition("Answerable")[2]
        assert f"Trigger {REPLIES}: a Trigger of this name was written by others" in message
        assert "spec" in platform.trigger(REPLIES)
        assert platform.trigger(REPLIES)["spec"] == elsewhere


async def test_a_right_that_is_missing_is_an_event_and_the_reason_of_a_condition() -> None:
    def refuse(request: web.Request) -> tuple[int, str] | None:
        wrote = request.method in ("POST", "PATCH") and "triggers" in request.path
        return (403, "triggers is forbidden: account cannot create") if wrote and refusing else None

    refusing = True
    async with reply_platform(ApiServer(refuse=refuse)) as platform:
        await platform.apply_tool()
        await platform.apply_broker()
        await platform.wait_for(lambda: platform.condition("Answerable")[1] == "ReplyTriggerNotWritten")
        await platform.wait_for(lambda: bool(platform.api.posted))

        status, _, message = platform.condition("Answerable")
        assert status == "False"
        assert "the operator cannot write it" in message
        assert "account cannot create" in message
        assert f"name: {REPLIES}, namespace: {NAMESPACE}" in message
        (event,) = platform.api.posted
        assert (event["type"], event["reason"]) == ("Warning", "ReplyTriggerNotWritten")
        assert event["regarding"]["kind"] == "Broker"
        assert "account cannot create" in event["note"]

        refusing = False
        await platform.apply_broker(labels={"a": "b"})
        await platform.wait_for_triggers("weather", REPLIES, PROGRESS)
        await platform.publish_ready(REPLIES)
        await platform.wait_for(lambda: platform.condition("Answerable")[0] == "True")


async def test_a_broker_that_is_being_deleted_gets_nothing() -> None:
    async with reply_platform() as platform:
        await platform.apply_broker(deletionTimestamp="2026-01-01T00:00:00Z")
        await platform.settle()

        assert platform.triggers() == set()


async def test_a_replica_that_does_not_lead_writes_nothing() -> None:
    async with reply_platform() as platform:
        platform.leads = False
        await platform.apply_broker("other")
        await platform.wait_for(lambda: len(platform.api.lists) >= 3)
        await platform.apply_tool("other")
        await platform.wait_for(lambda: platform.condition("Routed")[0] == "True")

        assert platform.writes == []


def timeout_of(platform: ReplyPlatform, name: str = "default") -> object:
    return platform.api.objects["brokers", NAMESPACE, name]["spec"]["delivery"].get("timeout")


async def test_a_kafka_broker_gets_a_time_limit_that_fits_its_slowest_tool() -> None:
    async with reply_platform() as platform:
        await platform.apply_broker(broker_class="Kafka")
        await platform.wait_for(lambda: timeout_of(platform) == "PT120S")

        await platform.apply_tool(**{"beckon.dev/timeout": "200.5s"})
        await platform.wait_for(lambda: timeout_of(platform) == "PT201S")
        await platform.apply_tool(**{"beckon.dev/timeout": "2h"})
        await platform.wait_for(lambda: timeout_of(platform) == "PT600S")
        await platform.api.delete("eventtypes", "get.weather", NAMESPACE)
        await platform.wait_for(lambda: timeout_of(platform) == "PT120S")

        delivery = platform.api.objects["brokers", NAMESPACE, "default"]["spec"]["delivery"]
        assert delivery["deadLetterSink"] == LEADS_TO_SHIM["delivery"]["deadLetterSink"]


@pytest.mark.parametrize(
    ("name", "broker_class", "delivery"),
    [
        ("default", "MTChannelBasedBroker", {}),
        ("default", "RabbitMQBroker", {}),
        ("default", "Beckon", {}),
        ("default", "Kafka", {"timeout": "PT30S"}),
        ("other", "Kafka", {}),
    ],
)
async def test_other_brokers_keep_the_time_limit_that_they_have(
    name: str, broker_class: str, delivery: dict[str, str]
) -> None:
    async with reply_platform() as platform:
        spec = {"delivery": {**LEADS_TO_SHIM["delivery"], **delivery}}
        await platform.apply_broker(name, spec, broker_class=broker_class)
        await platform.wait_for_triggers(f"{name}-beckon-replies", f"{name}-beckon-progress")
        await platform.settle()

        assert platform.api.objects["brokers", NAMESPACE, name]["spec"] == spec


async def test_a_time_limit_that_its_owner_changes_is_the_owners() -> None:
    async with reply_platform() as platform:
        await platform.apply_broker(broker_class="Kafka")
        await platform.wait_for(lambda: timeout_of(platform) == "PT120S")
        mine = {"delivery": {**LEADS_TO_SHIM["delivery"], "timeout": "PT45S"}}
        known = platform.api.objects["brokers", NAMESPACE, "default"]
        await platform.apply("brokers", "default", mine, annotations=known["metadata"]["annotations"])
        await platform.settle()

        assert timeout_of(platform) == "PT45S"


async def test_a_time_limit_that_may_not_be_written_is_an_event_of_the_broker() -> None:
    def refuse(request: web.Request) -> tuple[int, str] | None:
        return (403, "account cannot patch") if request.method == "PATCH" else None

    async with reply_platform(ApiServer(refuse=refuse)) as platform:
        await platform.apply_broker(broker_class="Kafka")
        await platform.wait_for(lambda: bool(platform.api.posted))

    (event,) = platform.api.posted
    assert (event["reason"], event["regarding"]["name"]) == ("DeliveryTimeoutNotWritten", "default")
    assert "account cannot patch" in event["note"]
