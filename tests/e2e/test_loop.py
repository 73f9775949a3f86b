"""The loop over the real platform, with a scripted model: calls, failures, limits, histories."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.agent.scripted_model import asks_for, calls, chunk, fragment, refuses, says, streamed
from tests.cli.run_beckon import beckon
from tests.e2e.conftest import Start
from tests.e2e.local_platform import LocalPlatform
from tests.e2e.manifests import tool_manifests
from tests.e2e.model_thread import ModelThread
from tests.patience import PATIENCE, wait_until

SECONDS = {
    "type": "object",
    "properties": {"seconds": {"type": "number"}},
    "required": ["seconds"],
    "additionalProperties": False,
}
KIND = {"type": "object", "properties": {"kind": {"type": "string"}}, "required": ["kind"]}
SERVE = "python -m beckon_tools serve tests.e2e.tools:"
QUICK = {"retry": 1, "backoffPolicy": "linear", "backoffDelay": "PT0.05S"}


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tests' own tools, among them a dead one and one that wants approval."""
    folder = tmp_path_factory.mktemp("manifests")
    approval = {"beckon.dev/requires-approval": "true"}
    texts = {
        "sleep": tool_manifests(
            "test-sleep",
            "Sleep.",
            SECONDS,
            command=SERVE + "sleep",
            annotations={"beckon.dev/timeout": "PT2S"},
        ),
        "fail": tool_manifests("test-fail", "Fail.", KIND, command=SERVE + "fail", delivery=None),
        "dead": tool_manifests("test-dead", "No one is there.", {}, url="http://127.0.0.1:9"),
        "paint": tool_manifests(
            "test-paint",
            "Paint a wall.",
            {},
            command="python -m beckon_tools serve tests.browser.tools:paint",
        ),
        "approve": tool_manifests("test-approve", "Ask.", {}, url="http://127.0.0.1:9", annotations=approval),
    }
    broker = {
        "apiVersion": "eventing.knative.dev/v1",
        "kind": "Broker",
        "metadata": {"name": "default", "namespace": "default"},
        "spec": {"delivery": QUICK},
    }
    (folder / "broker.json").write_text(json.dumps(broker))
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


@pytest.fixture(scope="module")
def platform(start_platform: Start, manifests: Path, model: ModelThread) -> LocalPlatform:
    """A platform of small limits with the scripted model."""
    return start_platform(
        manifests,
        OPENAI_BASE_URL=model.base_url,
        OPENAI_API_KEY="sk-secret-of-the-test",
        BECKON_MODEL="scripted",
        BECKON_MAX_STEPS="4",
        BECKON_MAX_SECONDS="20",
    )


def ask(platform: LocalPlatform, *messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return the whole answer of the agent, tool events included."""
    request = {
        "model": "beckon",
        "messages": list(messages) or [user("go")],
        "beckon": {"events": True},
        **fields,
    }
    response = httpx.post(f"{platform.url}/v1/chat/completions", json=request, timeout=PATIENCE)
    assert response.status_code == 200, response.text
    document: dict[str, Any] = response.json()
    return document


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def finished(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events of calls that ended, in the order in which they did."""
    return [event for event in answer["beckon"]["events"] if event["type"] == "call.finished"]


def error_of(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the error of the only call."""
    (event,) = finished(answer)
    assert event["failed"]
    error: dict[str, Any] = event["result"]["error"]
    return error


def content(answer: dict[str, Any]) -> str:
    return str(answer["choices"][0]["message"]["content"])


def test_calls_of_one_turn_run_side_by_side_and_answer_in_their_order(
    platform: LocalPlatform, model: ModelThread
) -> None:
    long, short = ("test_sleep", {"seconds": 1.0}), ("test_sleep", {"seconds": 0.01})
    model.play(asks_for(long, short), says("done"))

    answer = ask(platform)
    results = [m["content"] for m in model.bodies[1]["messages"] if m["role"] == "tool"]

    assert [event["result"] for event in finished(answer)] == ["slept 0.01 seconds", "slept 1 seconds"]
    assert results == ["slept 1 seconds", "slept 0.01 seconds"]
    assert content(answer) == "done"


def test_text_before_and_after_a_call_is_shown(platform: LocalPlatform, model: ModelThread) -> None:
    one_call = calls(fragment(0, "call_1", "test_sleep", '{"seconds": 0}'))
    model.play(
        streamed(chunk({"content": "Let me see."}), one_call, chunk(finish="tool_calls")), says("Slept.")
    )

    assert content(ask(platform)) == "Let me see.\n\nSlept."


def test_a_dead_tool_is_undeliverable_at_once(platform: LocalPlatform, model: ModelThread) -> None:
    model.play(asks_for(("test_dead", {})), says("It is dead."))

    error = error_of(ask(platform))

    assert error["reason"] == "undeliverable"
    assert model.bodies[1]["messages"][-1]["role"] == "tool"


def test_a_slow_tool_times_out_by_its_own_setting(platform: LocalPlatform, model: ModelThread) -> None:
    model.play(asks_for(("test_sleep", {"seconds": 30})), says("never"))
    answer = ask(platform)

    assert error_of(answer)["reason"] == "timeout"


def test_a_tool_that_refuses_is_reported_as_it_says(platform: LocalPlatform, model: ModelThread) -> None:
    model.play(asks_for(("test_fail", {"kind": "refuse"})), says("ok"))

    assert error_of(ask(platform)) == {"reason": "tool_failed", "message": "this tool was asked to refuse"}


def test_an_exception_of_a_tool_is_an_error_that_the_model_reads_without_the_trace(
    platform: LocalPlatform, model: ModelThread
) -> None:
    model.play(asks_for(("test_fail", {"kind": "crash"})), says("ok"))

    answer = ask(platform)

    assert error_of(answer) == {"reason": "tool_failed", "message": "RuntimeError: the paper is out"}
    assert "Traceback" not in json.dumps(answer)


def test_arguments_that_do_not_fit_never_reach_the_tool(platform: LocalPlatform, model: ModelThread) -> None:
    model.play(asks_for(("test_sleep", {"seconds": "very long"})), says("ok"))

    error = error_of(ask(platform))

    assert error["reason"] == "invalid_arguments"
    assert "seconds" in error["problems"][0]


def test_arguments_that_only_the_tool_refuses_are_named_in_its_reply_and_so_recorded(
    platform: LocalPlatform, model: ModelThread
) -> None:
    model.play(asks_for(("test_fail", {"kind": "refuse", "colour": "red"})), says("ok"))

    answer = ask(platform, store=True)
    newest = httpx.get(f"{platform.url}/runs", params={"limit": 1}, timeout=PATIENCE).json()["data"][0]["id"]
    (exchanged,) = httpx.get(f"{platform.url}/runs/{newest}/events", timeout=PATIENCE).json()["data"]
    (call,) = httpx.get(f"{platform.url}/runs/{newest}", timeout=PATIENCE).json()["steps"][0]["calls"]

    refusal = {
        "reason": "invalid_arguments",
        "message": "colour: unknown parameter; leave it out (there are: kind)",
    }
    assert error_of(answer) == refusal
    assert json.loads(model.bodies[1]["messages"][-1]["content"]) == {"error": refusal}
    assert exchanged["reply"]["type"] == "test.fail.reply"
    assert exchanged["reply"]["data"] == {"error": refusal}
    assert (call["failed"], call["reason"], call["result"]) == (True, "invalid_arguments", {"error": refusal})


def test_arguments_that_can_be_repaired_are(platform: LocalPlatform, model: ModelThread) -> None:
    broken = calls(fragment(0, "call_1", "test_sleep", "{'seconds': '0.01',}"))
    model.play(streamed(broken, chunk(finish="tool_calls")), says("ok"))

    assert finished(ask(platform))[0]["result"] == "slept 0.01 seconds"


def test_two_argument_objects_in_one_call_are_two_calls(platform: LocalPlatform, model: ModelThread) -> None:
    both = calls(fragment(0, "call_1", "test_sleep", '{"seconds": 0.01}{"seconds": 0.02}'))
    model.play(streamed(both, chunk(finish="tool_calls")), says("ok"))

    results = {event["result"] for event in finished(ask(platform))}

    assert results == {"slept 0.01 seconds", "slept 0.02 seconds"}


def test_an_invented_tool_is_an_error_with_a_suggestion(platform: LocalPlatform, model: ModelThread) -> None:
    model.play(asks_for(("test_sleeep", {"seconds": 0})), says("ok"))

    error = error_of(ask(platform))

    assert error["reason"] == "unknown_tool"
    assert "test_sleep" in error["message"]


def test_a_tool_that_wants_approval_is_denied(platform: LocalPlatform, model: ModelThread) -> None:
    model.play(asks_for(("test_approve", {})), says("ok"))

    assert error_of(ask(platform))["reason"] == "denied"


def test_a_run_ends_at_its_step_limit_and_says_so(platform: LocalPlatform, model: ModelThread) -> None:
    model.play(*[asks_for(("test_sleep", {"seconds": 0}))] * 9)

    answer = ask(platform)

    assert len(model.bodies) == 4
    assert answer["choices"][0]["finish_reason"] == "length"
    assert content(answer).startswith("[stopped:")


def test_a_failing_model_is_a_502_that_names_it_and_not_the_key(
    platform: LocalPlatform, model: ModelThread
) -> None:
    model.play(refuses(400, "bad things about sk-secret-of-the-test"))
    request = {"model": "beckon", "messages": [user("go")]}

    response = httpx.post(f"{platform.url}/v1/chat/completions", json=request, timeout=PATIENCE)

    assert response.status_code == 502
    assert "bad things" in response.json()["error"]["message"]
    assert "sk-secret-of-the-test" not in response.text + platform.text()


def test_a_conversation_that_was_cut_off_in_a_call_goes_on(
    platform: LocalPlatform, model: ModelThread
) -> None:
    model.play(says("fine"))
    hanging = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "x", "type": "function", "function": {"name": "test_sleep", "arguments": ""}}],
    }

    answer = ask(platform, user("go"), hanging, user("and?"))
    roles = [message["role"] for message in model.bodies[0]["messages"]]

    assert content(answer) == "fine"
    assert roles == ["system", "user", "assistant", "tool", "user"]


def test_a_server_without_tools_gets_a_dialect_from_then_on(
    start_platform: Start, manifests: Path, model: ModelThread
) -> None:
    platform = start_platform(manifests, OPENAI_BASE_URL=model.base_url, BECKON_MODEL="some-model")
    refusal = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
    call = '{"functionCall": {"name": "test_sleep", "args": {"seconds": 0.01}}}'
    model.play(refuses(400, refusal), says(*call), says("rested"), says("hello"))

    answer = ask(platform)
    again = ask(platform)

    assert finished(answer)[0]["result"] == "slept 0.01 seconds"
    assert (content(answer), content(again)) == ("rested", "hello")
    assert ["tools" in body for body in model.bodies] == [True, False, False, False]


def test_a_request_may_do_without_tools(platform: LocalPlatform, model: ModelThread) -> None:
    model.play(says("no tools"))

    ask(platform, user("go"), tool_choice="none")

    assert not model.bodies[0].get("tools")


def test_the_form_of_a_tool_is_filled_in_on_the_command_line(
    platform: LocalPlatform, model: ModelThread
) -> None:
    model.play(asks_for(("test_paint", {})), says("It is red."))
    settings = {"BECKON_PORT": str(platform.port)}
    waiting = beckon("ask", "--stored", "Paint it", settings=settings)
    listed = beckon("inputs", settings=settings).stdout
    (form,) = json.loads(beckon("inputs", "--json", settings=settings).stdout)
    wrong = beckon("answer", form["id"], "colour=blue", settings=settings)
    right = beckon("answer", form["id"], "colour=red", "coats=2", settings=settings)
    again = beckon("answer", form["id"], "--decline", settings=settings)
    wait_until(lambda: "completed" in beckon("runs", settings=settings).stdout)
    shown = httpx.get(f"{platform.url}/runs/{form['run']}", timeout=PATIENCE).json()

    assert waiting.returncode == 0, waiting.stderr
    assert "? test_paint: Which colour" in waiting.stdout
    assert "←" not in waiting.stdout  # the call has no result yet
    assert f"next: beckon answer {form['id']} colour=… coats=…" in waiting.stderr
    assert "test_paint: Which colour" in listed
    assert (wrong.returncode, right.returncode, again.returncode) == (1, 0, 1)
    assert "`colour` must be one of" in wrong.stderr
    assert "the form waits no more" in again.stderr
    assert shown["steps"][0]["calls"][0]["result"] == "painted red, 2 times"
    assert beckon("inputs", settings=settings).stdout == "no tool waits for input\n"
