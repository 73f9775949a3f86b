"""The bridge: a call event becomes one of a real MCP server, over HTTP or the standard streams."""

import asyncio
import base64
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from beckon_adapter.egress.hosts import Credential
from beckon_adapter.rule import InvalidRule, NamedServer, parse_mcp_rule
from beckon_contract.cloudevents.events import CloudEvent
from beckon_contract.inputs import InputRequest
from beckon_contract.kubernetes_objects import Resource
from beckon_runtime.egress import AllowedHost
from tests.adapter.plain_api import PlainApi, adapting, api_answer, egress_to, event_type, local, serving
from tests.e2e.local_platform import port_range
from tests.tools.serving import Caller, call

SERVER = Path(__file__).with_name("mcp_tools.py")
STDIO = NamedServer(name="tools", command=(sys.executable, str(SERVER)), env={"GIVEN": "yes"})
NUMBERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}


def tool_of(server: str, tool: str, parameters: object = None, **more: str) -> Resource:
    made = event_type("{}", parameters, **more)
    annotations = {name: text for name, text in made.annotations.items() if name != "beckon.dev/http"}
    annotations["beckon.dev/mcp"] = f"{{server: '{server}', tool: {tool}}}"
    return replace(made, annotations=annotations)


@asynccontextmanager
async def http_server(port: int) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run the server over HTTP."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, SERVER, str(port)), stderr=asyncio.subprocess.DEVNULL
    )
    try:
        for _ in range(400):
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                break
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def bridging(kind: str, tool: str, parameters: object = None, **more: str) -> AsyncIterator[Caller]:
    """Serve an adapter with one tool of the server, over HTTP or the standard streams."""
    if kind == "stdio":
        async with adapting(
            egress_to(), tool_of("tools", tool, parameters, **more), servers=[STDIO]
        ) as adapter:
            yield adapter
        return
    port = port_range()
    request = tool_of(f"http://127.0.0.1:{port}/mcp", tool, parameters, **more)
    egress = egress_to(AllowedHost(host=f"http://127.0.0.1:{port}", private=True))
    async with http_server(port), adapting(egress, request) as adapter:
        yield adapter


def call_event(arguments: object, id: str = "call-1") -> Any:  # noqa: A002 - the attribute's name
    return call("api.asked", arguments, id=id)


def message(result: object) -> str:
    assert isinstance(result, dict), result
    return str(result["error"]["message"])


@pytest.mark.parametrize("kind", ["http", "stdio"])
async def test_a_call_is_one_of_the_servers_tool_and_its_structured_result_the_reply(kind: str) -> None:
    async with bridging(kind, "mirror") as adapter:
        reply = await adapter.reply(call_event({"x": 1, "y": 2}))

    assert reply.json() == {"x": -1, "y": -2}
    assert reply.extensions["replyid"] == "token-1"


@pytest.mark.parametrize("kind", ["http", "stdio"])
async def test_the_server_is_given_the_trace_of_the_call(kind: str) -> None:
    traced = call("api.asked", {}, traceparent=f"00-{'1' * 32}-{'2' * 16}-01")
    async with bridging(kind, "trace_of") as adapter:
        found = await adapter.result(traced)

    assert str(found).split("-")[1] == "1" * 32


PICTURE = {"media_type": "image/png", "data_base64": base64.b64encode(b"\x89PNG").decode()}
SOUND = {"media_type": "audio/wav", "data_base64": base64.b64encode(b"RIFF").decode()}


@pytest.mark.parametrize(
    ("tool", "arguments", "found"),
    [
        ("add", {"a": 1, "b": 2}, {"result": 3}),
        ("say", {"text": "hello"}, "hello"),
        ("several", {}, ["a", PICTURE, SOUND]),
        ("picture", {}, {"media_type": "image/png", "data_base64": "iVBO"}),
    ],
)
async def test_content_of_every_kind_becomes_a_result(tool: str, arguments: object, found: object) -> None:
    async with bridging("stdio", tool) as adapter:
        assert await adapter.result(call_event(arguments)) == found


@pytest.mark.parametrize("kind", ["http", "stdio"])
async def test_what_the_tool_refuses_is_reported_and_the_server_lives_on(kind: str) -> None:
    async with bridging(kind, "add") as adapter:
        wrong = message(await adapter.result(call_event({"a": "x"})))
        good = await adapter.result(call_event({"a": 1, "b": 2}, "call-2"))
    async with bridging(kind, "no_such_tool") as adapter:
        unknown = message(await adapter.result(call_event({})))

    assert "validation errors" in wrong
    assert good == {"result": 3}
    assert "no_such_tool" in unknown


async def test_an_argument_is_repeated_in_the_header_that_the_server_names() -> None:
    async with bridging("http", "region") as adapter:
        assert await adapter.result(call_event({"name": "eu-1"})) == "eu-1 eu-1"


@pytest.mark.parametrize("kind", ["http", "stdio"])
async def test_a_result_that_does_not_fit_the_servers_schema_is_an_error_with_its_path(kind: str) -> None:
    async with bridging(kind, "oversized") as adapter:
        said = message(await adapter.result(call_event({})))

    assert said == (
        "the tool ran, but its result does not fit its outputSchema: "
        "$.size: 11 is greater than the maximum of 10"
    )


async def test_arguments_are_checked_by_the_eventtype_first() -> None:
    async with bridging("stdio", "add", NUMBERS) as adapter:
        refused = await adapter.refusal(call_event({"a": "x"}))

    assert refused.startswith("`a` must be integer")


async def test_a_command_runs_once_for_all_its_calls_with_an_environment_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BECKON_MANIFESTS", "secret")
    async with bridging("stdio", "process") as adapter:
        first = await adapter.result(call_event({}))
        second = await adapter.result(call_event({}, "call-2"))

    assert first == second
    assert str(first).endswith(" yes")


async def test_a_command_that_died_is_started_again_and_a_call_that_may_be_repeated_is(
    tmp_path: Path,
) -> None:
    mark = str(tmp_path / "mark")
    async with bridging("stdio", "die_once", idempotent="true") as adapter:
        lost = await adapter.post(call_event({"mark": mark}))
        again = await adapter.result(call_event({"mark": mark}))

    assert (lost.status_code, again) == (503, "alive")
    assert "the MCP server tools is lost" in lost.json()["detail"]


@pytest.mark.parametrize("kind", ["http", "stdio"])
async def test_a_call_that_the_server_may_have_carried_out_is_not_repeated(kind: str) -> None:
    async with bridging(kind, "die") as adapter:
        results = [await adapter.result(call_event({})) for _ in range(2)]

    assert results[0] == results[1]
    assert "may have had its effect, and was not repeated" in message(results[0])
    assert "outcome_unknown" in str(results[0])


async def test_a_server_that_is_away_is_for_the_broker_to_try_again_and_is_called_when_it_is_back() -> None:
    port = port_range()
    egress = egress_to(AllowedHost(host=f"http://127.0.0.1:{port}", private=True))
    async with adapting(egress, tool_of(f"http://127.0.0.1:{port}/mcp", "add")) as adapter:
        away = await adapter.post(call_event({"a": 1, "b": 2}))
        async with http_server(port):
            back = await adapter.result(call_event({"a": 1, "b": 2}))
        gone = await adapter.post(call_event({"a": 1, "b": 2}, "call-2"))
        async with http_server(port):
            again = await adapter.result(call_event({"a": 1, "b": 2}, "call-2"))

    assert (away.status_code, gone.status_code) == (503, 503)
    assert back == again == {"result": 3}


@pytest.mark.parametrize("command", [("/no/such/program",), ("true",)])
async def test_a_command_that_does_not_start_is_for_the_broker_to_try_again(command: Sequence[str]) -> None:
    server = NamedServer(name="tools", command=tuple(command))
    async with adapting(egress_to(), tool_of("tools", "add"), servers=[server]) as adapter:
        response = await adapter.post(call_event({}))

    assert response.status_code == 503
    assert "does not start" in response.json()["detail"]


@pytest.mark.parametrize("kind", ["http", "stdio"])
async def test_a_server_that_takes_too_long_is_given_up(kind: str) -> None:
    async with bridging(kind, "slow, timeout: 3s") as adapter:
        reported_for = message(await adapter.result(call_event({"seconds": 20})))

    assert "did not answer in time" in reported_for


async def test_an_answer_that_is_too_large_is_reported() -> None:
    async with bridging("http", "large") as adapter:
        reported_for = message(await adapter.result(call_event({})))

    assert "answered with more than 10000 bytes" in reported_for


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ("https://mcp.example.com/mcp", "may not call mcp.example.com"),
        ("http://169.254.169.254/mcp", "may not call http://169.254.169.254:80"),
        ("other", "knows no MCP server 'other'; its owner can add it (BECKON_ADAPTER_MCP_SERVERS)"),
    ],
)
async def test_a_server_that_the_owner_did_not_allow_is_not_called(server: str, said: str) -> None:
    async with adapting(egress_to(), tool_of(server, "add")) as adapter:
        assert said in message(await adapter.result(call_event({})))


async def test_a_server_gets_its_credential(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cr3t")
    api = PlainApi([api_answer({"error": "no"}, 401)])
    async with serving(api) as port:
        origin = f"http://api.test:{port}"
        credential = Credential(name="key", hosts=(origin,), file=tmp_path / "token")
        rule = tool_of(f"{origin}/mcp", "add, credential: key")
        async with adapting(egress_to(local(port), credentials=[credential]), rule) as adapter:
            response = await adapter.post(call_event({}))

    assert {one.headers["authorization"] for one in api.requests} == {"Bearer s3cr3t"}
    assert "s3cr3t" not in response.text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{server: tools}", "tool: Field required"),
        ("{server: 'a b', tool: x}", "must be the name of a server, or its URL"),
        ("{server: 'https://{host}/', tool: x}", "the host is fixed"),
        ("{server: 'https://a.example/{x}', tool: x}", "no arguments in it"),
        ("{server: tools, tool: x, url: y}", "url: Extra inputs"),
        ("text", "must be a mapping"),
        ("[", "not YAML"),
    ],
)
def test_what_is_wrong_with_a_rule_is_reported(text: str, said: str) -> None:
    with pytest.raises(InvalidRule) as caught:
        parse_mcp_rule(text)

    assert said in str(caught.value)
    assert "metadata.annotations[beckon.dev/mcp]" in str(caught.value)


async def test_a_server_that_repeats_its_credential_is_received_without_it(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cr3t")
    port = port_range()
    origin = f"http://127.0.0.1:{port}"
    egress = egress_to(
        AllowedHost(host=origin, private=True),
        credentials=[Credential(name="key", hosts=(origin,), file=token)],
    )
    said = tool_of(f"{origin}/mcp", "say, credential: key")
    async with http_server(port), adapting(egress, said) as adapter:
        result = await adapter.result(call_event({"text": "the token is s3cr3t"}))
    refused = tool_of(f"{origin}/mcp", "add, credential: key")
    egress = egress_to(
        AllowedHost(host=origin, private=True),
        credentials=[Credential(name="key", hosts=(origin,), file=token)],
    )
    async with http_server(port), adapting(egress, refused) as adapter:
        error = message(await adapter.result(call_event({"a": "s3cr3t"})))

    assert result == "the token is [credential]"
    assert "s3cr3t" not in error


async def test_a_server_of_the_older_revision_is_called_as_well() -> None:
    old = NamedServer(name="tools", command=(sys.executable, str(SERVER.with_name("old_mcp_tools.py"))))
    async with adapting(egress_to(), tool_of("tools", "greet"), servers=[old]) as adapter:
        assert await adapter.result(call_event({"name": "Ann"})) == "hello Ann"
        assert await adapter.result(call_event({"name": "Bob"}, "call-2")) == "hello Bob"


def answered(reply: CloudEvent, id: str = "call-1~1", **answer: object) -> dict[str, str]:  # noqa: A002 - the attribute's name
    """Return the attributes of a call with the answer to the form in a reply."""
    assert reply.extensions["beckonstate"] == "input_required", reply
    filled = InputRequest.from_document(reply.json()).fill_form(answer)
    assert filled.answer is not None
    return {"id": id, "beckoninput": filled.answer.to_attribute()}


def question_of(reply: CloudEvent) -> str:
    return InputRequest.from_document(reply.json()).message


@pytest.mark.parametrize("kind", ["http", "stdio"])
async def test_a_form_of_the_server_is_put_to_the_person_and_the_answer_passed_on(kind: str) -> None:
    async with bridging(kind, "wrap") as adapter:
        first = await adapter.reply(call_event({"item": "a hat"}))
        accepted = answered(first, action="accept", content={"colour": "red"})
        done = await adapter.result(call("api.asked", {"item": "a hat"}, **accepted))
        declined = answered(first, "call-1~2", action="decline")
        refused = await adapter.result(call("api.asked", {"item": "a hat"}, **declined))
        other = await adapter.reply(call("api.asked", {"item": "a coat"}, **{**accepted, "id": "call-3~1"}))

    assert question_of(first) == "Which paper for a hat?"
    assert done == "accept red, wrapping"
    assert refused == "decline None, wrapping"
    assert question_of(other) == "Which paper for a coat?"


async def test_a_server_of_the_older_revision_may_request_input_too() -> None:
    old = NamedServer(name="tools", command=(sys.executable, str(SERVER.with_name("old_mcp_tools.py"))))
    async with adapting(egress_to(), tool_of("tools", "choose"), servers=[old]) as adapter:
        first = await adapter.reply(call_event({}))
        accepted = answered(first, action="accept", content={"size": 7})
        done = await adapter.result(call("api.asked", {}, **accepted))

    assert question_of(first) == "Which size?"
    assert json.loads(str(done)) == {"action": "accept", "content": {"size": 7}}


async def test_a_page_that_a_person_must_open_is_an_error_with_the_reason() -> None:
    async with bridging("stdio", "sign") as adapter:
        error = message(await adapter.result(call_event({})))

    assert error == "the MCP server requires a person to open a page, which is not supported"
