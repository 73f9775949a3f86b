"""The processes of the local platform: which tools share one, and what each gets."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from beckon_cli.local.plan import for_tools, manifests, outbox_prefix, tool_programs
from beckon_cli.local.process import Program
from beckon_cli.local.services import ADAPTER, LocalService, ServiceName, wanted
from beckon_contract.kubernetes_objects import Resource, parse_manifests

EXAMPLES = Path(__file__).parents[2] / "deploy" / "examples"
OWN = LocalService(ServiceName("default", "own"), (sys.executable, "-m", "beckon_tools", "serve", "own:tool"))
Programs = dict[tuple[ServiceName, ...], Program]


def shipped(name: str, broker: str = "default", namespace: str = "default") -> LocalService:
    command = (sys.executable, "-m", "beckon_tools", "serve", name)
    return LocalService(ServiceName(namespace, name), command, broker=broker)


def programs(
    tools: Iterable[LocalService], environment: Mapping[str, str] | None = None, outboxes: str = ""
) -> Programs:
    tools = list(tools)
    ports = {local.service: 9001 + number for number, local in enumerate(tools)}
    given = {"BECKON_MANIFESTS": "m", **(environment or {})}
    return tool_programs(tools, ports, "http://127.0.0.1:9000", given, outboxes)


def names(found: Programs) -> list[list[str]]:
    return [[name.name for name in group] for group in found]


def test_the_examples_take_two_processes_the_adapter_one_of_its_own() -> None:
    resources = [
        one
        for path in sorted(EXAMPLES.rglob("*.yaml"))
        for one in parse_manifests(path.read_text("utf-8"), path.name)
        if isinstance(one, Resource)
    ]
    tools = [local for local in wanted(resources, "http://127.0.0.1:8080").services.values() if local.command]

    adapter, group = names(programs(tools))

    assert adapter == ["beckon-adapter"]
    assert {"calculator", "library", "sql", "track"} <= set(group)


def test_a_tool_of_the_users_has_a_process_of_its_own() -> None:
    found = programs([shipped("calculator"), OWN, shipped("sql")])

    assert names(found) == [["calculator", "sql"], ["own"]]
    assert found[OWN.service,].command == OWN.command
    assert found[OWN.service,].environment["PORT"] == "9002"


def test_a_group_knows_the_port_and_the_name_of_each_member() -> None:
    (program,) = programs([shipped("calculator"), shipped("sql")], {"BECKON_ALLOWED_HOSTS": "mine"}).values()

    assert program.command[1:] == ("-m", "beckon_cli.local.group", "calculator=9001", "sql=9002")
    assert program.urls == ("http://127.0.0.1:9001", "http://127.0.0.1:9002")
    hosts = program.environment["BECKON_ALLOWED_HOSTS"].split(",")
    assert {"mine", "calculator.default.svc", "sql.default.svc.cluster.local"} <= set(hosts)


def test_tools_of_different_brokers_share_no_process() -> None:
    found = programs(
        [shipped("calculator"), shipped("sql", broker="second"), shipped("track", namespace="o")]
    )

    assert names(found) == [["calculator"], ["sql"], ["track"]]
    sinks = [
        program.environment["K_SINK"].removeprefix("http://127.0.0.1:9000") for program in found.values()
    ]
    assert sinks == ["/default/default", "/default/second", "/o/default"]


@pytest.mark.parametrize("endpoint", ["http://collector:4318", "no URL"])
def test_with_a_collector_each_tool_has_a_process_and_so_a_name_in_its_spans(endpoint: str) -> None:
    found = programs([shipped("calculator"), shipped("sql")], {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint})

    assert names(found) == [["calculator"], ["sql"]]


def test_a_tool_has_an_outbox_of_its_own_unless_the_user_names_one() -> None:
    other = LocalService(ServiceName("shop", "own"), OWN.command)
    found = programs([shipped("calculator"), shipped("sql"), OWN, other], outboxes="/state/")
    given = programs([OWN], {"BECKON_TOOLS_OUTBOX": "mine.db"}, outboxes="/state/")

    paths = [program.environment.get("BECKON_TOOLS_OUTBOX") for program in found.values()]
    assert paths == [None, "/state/default.own.outbox", "/state/shop.own.outbox"]
    assert "BECKON_TOOLS_OUTBOX" not in given[OWN.service,].environment


@pytest.mark.parametrize(
    ("store", "prefix"),
    [
        ("", "/state/"),
        ("sqlite://", "/state/"),
        ("sqlite:///:memory:", "/state/"),
        ("sqlite:///runs.db", "{here}/runs.db."),
        ("sqlite:////data/runs.db", "/data/runs.db."),
        ("postgresql://u:p@h/d", ""),
    ],
)
def test_outboxes_live_as_long_as_the_runs(store: str, prefix: str) -> None:
    environment = {"BECKON_STORE": store} if store else {}

    assert outbox_prefix(environment, Path("/state")) == prefix.format(here=Path.cwd())


def test_tools_get_neither_the_keys_of_the_shim_nor_the_store() -> None:
    secrets = {"BECKON_SHIM_KEYS": "k", "BECKON_SHIM_KEYS_FILE": "f", "BECKON_STORE": "s"}

    assert for_tools({**secrets, "HOME": "h"}) == {"HOME": "h"}


def test_a_service_has_an_address_or_is_not_ready() -> None:
    text = manifests(
        addresses={OWN.service: "http://127.0.0.1:9001"},
        starting=[OWN.service, ADAPTER],
        brokers={},
        broker_url="",
        reply_url="",
        reply_attribute="replyid",
    )

    found = [one for one in parse_manifests(text, "generated") if isinstance(one, Resource)]
    services = {(one.namespace, one.name): one.status for one in found}
    assert services["default", "own"] == {"address": {"url": "http://127.0.0.1:9001"}}
    (ready,) = services["beckon", "beckon-adapter"]["conditions"]
    assert (ready["type"], ready["status"]) == ("Ready", "False")
