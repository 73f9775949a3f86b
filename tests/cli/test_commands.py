"""The commands that need nothing running: tools and check; and what wrong use is answered with."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from beckon_cli.commands.up import misspelt
from tests.cli.run_beckon import beckon
from tests.shared_data import shared_data

EXAMPLES = Path(__file__).resolve().parents[2] / "deploy" / "examples"
TOOLS = [
    "ask_researcher",
    "calculator",
    "current_time",
    "find_books",
    "get_current_weather",
    "reserve_book",
    "sql",
    "text_to_speech",
    "track",
]

MISTAKES = """
apiVersion: eventing.knative.dev/v1beta2
kind: EventType
metadata:
  name: weather
spec:
  type: get.weather
  description: Tell the weather.
---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata:
  name: weather
spec:
  broker: default
  filter:
    attributes:
      type: get.wether
  subscriber:
    ref: {apiVersion: serving.knative.dev/v1, kind: Service, name: weather}
---
apiVersion: eventing.knative.dev/v1beta2
kind: EventType
metadata:
  name: broken
  annotations:
    beckon.dev/parameters: '{"type": "object", "properties": {"a": {"type": "strin"}}}'
spec:
  type: broken
  description: Broken parameters.
"""


@pytest.fixture
def mistakes(tmp_path: Path) -> Path:
    """A folder with a misspelt Trigger, a broken schema and a file that is no YAML."""
    (tmp_path / "mistakes.yaml").write_text(MISTAKES)
    (tmp_path / "nonsense.yaml").write_text("a: [1,\n")
    return tmp_path


def test_tools_lists_what_the_model_sees() -> None:
    ended = beckon("tools", "--manifests", str(EXAMPLES))

    assert ended.returncode == 0, ended.stderr
    first_words = [line.split()[0] for line in ended.stdout.splitlines() if line[:1].strip()]
    assert [word for word in first_words if word != "skipped"] == TOOLS
    assert "location  string, required" in ended.stdout


def test_tools_as_json_is_openais_array_and_refusals_are_lines_on_standard_error(mistakes: Path) -> None:
    good = beckon("tools", "--manifests", str(EXAMPLES), "--json")
    bad = beckon("tools", "--manifests", str(mistakes), "--json")
    declarations = json.loads(good.stdout)
    refusals = [json.loads(line) for line in bad.stderr.splitlines()]

    assert [tool["function"]["name"] for tool in declarations] == TOOLS
    for tool in declarations:
        jsonschema.Draft202012Validator.check_schema(tool["function"]["parameters"])
    assert good.stderr == ""
    assert json.loads(bad.stdout) == []
    assert {refusal["reason"] for refusal in refusals} >= {"FilterMismatch", "Unreadable"}
    assert len(refusals) == 3


def test_tools_as_json_says_on_standard_error_which_eventtypes_are_no_tools(tmp_path: Path) -> None:
    undescribed = MISTAKES.partition("---")[0].replace("  description: Tell the weather.\n", "")
    (tmp_path / "plain.yaml").write_text(undescribed)
    ended = beckon("tools", "--manifests", str(tmp_path), "--json")
    (left_out,) = [json.loads(line) for line in ended.stderr.splitlines()]

    assert (ended.returncode, json.loads(ended.stdout)) == (0, [])
    assert (left_out["event_type"], left_out["namespace"]) == ("weather", "default")
    assert left_out["reason"]
    assert left_out["message"]


def test_check_names_each_mistake_and_what_to_write_and_exits_with_one(mistakes: Path) -> None:
    ended = beckon("check", str(mistakes))

    assert ended.returncode == 1
    assert "get.wether" in ended.stdout
    assert "strin" in ended.stdout
    assert "nonsense.yaml" in ended.stdout
    assert ended.stdout.splitlines()[-1].startswith("0 tools, ")


def test_check_as_json_shows_the_same(mistakes: Path) -> None:
    ended = beckon("check", "--json", str(mistakes))
    document = json.loads(ended.stdout)

    assert ended.returncode == 1
    assert document["errors"] == sum(finding["severity"] == "error" for finding in document["findings"]) >= 3
    assert document["tools"] == []


def test_check_of_the_shipped_manifests_finds_no_error() -> None:
    ended = beckon("check", str(EXAMPLES))

    assert ended.returncode == 0, ended.stdout
    assert all(f"becomes {tool}(" in ended.stdout for tool in TOOLS)


OTHERS = """
apiVersion: eventing.knative.dev/v1beta2
kind: EventType
metadata:
  name: greet
  annotations: {beckon.dev/reply: any, beckon.dev/reply-attribute: responseid}
spec: {type: greet, description: Greet.}
---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: greet}
spec:
  broker: default
  filter: {attributes: {type: greet}}
  subscriber: {uri: "http://127.0.0.1:9/"}
"""


def test_check_shows_what_a_service_answers(tmp_path: Path) -> None:
    (tmp_path / "greet.yaml").write_text(OTHERS)

    lines = beckon("check", str(tmp_path))
    document = json.loads(beckon("check", "--json", str(tmp_path)).stdout)

    assert "; any answer is the reply; replies name the call in responseid" in " ".join(lines.stdout.split())
    assert [(tool["reply"], tool["reply_attribute"]) for tool in document["tools"]] == [("any", "responseid")]


MISSING = """
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: weather}
spec:
  broker: BROKER
  filter: {attributes: {type: get.weather}}
  subscriber: {ref: {apiVersion: serving.knative.dev/v1, kind: Service, name: wether}}
---
apiVersion: serving.knative.dev/v1
kind: Service
metadata:
  name: SERVICE
  annotations: {beckon.dev/local-command: python -m weather}
"""


def _warnings_of(folder: Path, broker: str, service: str) -> list[tuple[str, str]]:
    manifest = MISSING.replace("BROKER", broker).replace("SERVICE", service)
    (folder / "weather.yaml").write_text(manifest)
    ended = beckon("check", "--json", str(folder))
    assert ended.returncode == 0, ended.stdout
    return [(finding["field"], finding["message"]) for finding in json.loads(ended.stdout)["findings"]]


def test_check_warns_of_a_service_and_a_broker_that_no_manifest_has(tmp_path: Path) -> None:
    (_, service), (_, broker) = found = _warnings_of(tmp_path, "defualt", "weather")

    assert [field for field, _ in found] == ["spec.subscriber", "spec.broker"]
    assert service.startswith("no manifest has the Service default/wether; did you mean weather?")
    assert broker == "no manifest has the Broker default/defualt; did you mean default?"


def test_check_takes_a_service_of_the_manifests_and_the_default_broker(tmp_path: Path) -> None:
    assert _warnings_of(tmp_path, "default", "wether") == []


def test_check_reads_knatives_blog_as_it_is() -> None:
    blog = shared_data("examples")

    ended = beckon("check", str(blog / "blog-eventtype.yaml"), str(blog / "blog-trigger.yaml"))

    assert ended.returncode == 0, ended.stdout
    assert "becomes get_current_weather(location, unit)" in ended.stdout
    assert "beckon.dev/parameters" in ended.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["chek"], 'Did you mean "check"?'),
        (["check"], "name files or folders"),
        (["check", "/no/such/folder"], "/no/such/folder"),
        (["up", "--port", "x"], "--port"),
        (["up", "--port", "70000"], "BECKON_PORT"),
        (["up", "--manifests", "/no/such/folder"], "/no/such/folder"),
        (["ask"], "no question"),
        (["tools", "--manifests", "/no/such/folder"], "/no/such/folder"),
        (["call", "calculator", "expression"], "key=value"),
        (["replay", ""], "no run"),
        (["replay", "resp_1", "--yes"], "--live-tools"),
    ],
)
def test_wrong_use_is_one_line_and_status_two(words: list[str], says: str, tmp_path: Path) -> None:
    ended = beckon(*words, cwd=tmp_path)

    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.count("\n") == 1
    assert says in ended.stderr


def test_a_wrong_setting_in_the_env_file_names_itself(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("BECKON_PORT=many\n")

    ended = beckon("tools", cwd=tmp_path)

    assert ended.returncode == 2
    assert ended.stderr.startswith("beckon: BECKON_PORT: ")


def test_help_teaches_every_verb() -> None:
    ended = beckon("--help")

    assert ended.returncode == 0
    for verb in ("up", "ask", "chat", "tools", "call", "check", "keys", "replay"):
        assert f" {verb} " in ended.stdout
        page = beckon(verb, "--help")
        assert page.returncode == 0
        assert page.stdout.startswith(f"Usage: beckon {verb}")


def test_help_of_an_import_has_an_example_and_no_default_that_is_nothing() -> None:
    for kind in ("mcp", "openapi"):
        page = beckon("import", kind, "--help").stdout
        assert "For instance:" in page
        assert "[default" not in page
    assert beckon("import", "--help").stdout.count("Make EventTypes") == 3


@pytest.mark.parametrize("host", ["203.0.113.7", "no-such-host.invalid"])
def test_a_host_that_is_not_of_this_machine_is_named(host: str, tmp_path: Path) -> None:
    ended = beckon("up", "--host", host, "--manifests", str(tmp_path))

    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert f"cannot listen on {host}" in ended.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["up", "--dialect", "hermes"], "the demo model speaks auto, chatglm3, native, prompted"),
        (["up", "--dialect", "klingon"], "choose one of: auto, native"),
        (["call", "", "a=1"], "no tool"),
        (["call", "x", "a=1", "a=2"], "a is given twice"),
        (["ask", "--jsn", "hello"], "--jsn"),
        (["up", "somewhere"], "beckon up takes no 'somewhere' (beckon up --help teaches)"),
        (["approve"], "RESPONSE requires an argument (beckon approve --help teaches)"),
        (["keys", "revoke", "file"], "WHICH requires an argument (beckon keys revoke --help teaches)"),
        (["import", "mcp", "ftp://a.example"], "ftp://a.example is no server"),
        (["import", "openapi", "x.yaml", "--server", "nine"], "neither https://HOST/PATH nor a number"),
    ],
)
def test_what_cannot_be_meant_is_refused(words: list[str], says: str, tmp_path: Path) -> None:
    ended = beckon(*words, cwd=tmp_path)

    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert says in ended.stderr


def test_an_env_file_in_another_encoding_is_one_line(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"BECKON_MODEL=\xff\xfe\n")

    ended = beckon("tools", cwd=tmp_path)

    assert (ended.returncode, ended.stderr) == (2, "beckon: the file .env is not UTF-8\n")


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    command = (
        f"{sys.executable} -m beckon_cli tools --manifests {EXAMPLES} | head -1; exit ${{PIPESTATUS[0]}}"
    )

    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False)

    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_misspelt_setting_is_reported() -> None:
    (line,) = misspelt(["BECKON_PROT", "BECKON_PORT", "BECKON_SHIM_REPLY_PORT", "OTHER"])

    assert line == "there is no setting BECKON_PROT; did you mean BECKON_PORT?"
