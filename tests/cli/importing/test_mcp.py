"""`beckon import mcp`, with a real server: what becomes of its tools, and what is written where."""

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from mcp_types import Tool, ToolAnnotations

from beckon_adapter.check import check_rules
from beckon_cli.importing.candidates import ImportSource, NoSource, Skipped, Source, object_name
from beckon_cli.importing.mcp.tools import ImportedTools, Place, Server, import_tools
from beckon_cli.importing.report import required_settings
from beckon_contract.catalogue.check import check
from beckon_contract.kubernetes_objects import parse_manifests
from tests.cli.run_beckon import beckon
from tests.e2e.local_platform import ROOT

SERVER = (sys.executable, str(ROOT / "tests" / "adapter" / "mcp_tools.py"))
FILES = Server("files", Place("https://files.example/mcp"))
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


def become(tool: Tool) -> ImportedTools | Skipped:
    (found,) = import_tools([tool], FILES)
    return found


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("read_file", "read-file"),
        ("readFile", "read-file"),
        ("Read file!", "read-file"),
        ("a/b.c", "a-b-c"),
        ("日本", "tool"),
    ],
)
def test_the_name_of_a_tool_becomes_one_that_kubernetes_takes(name: str, made: str) -> None:
    assert object_name(name) == made


@pytest.mark.parametrize(
    ("said", "hints"),
    [
        (None, {}),
        (ToolAnnotations(), {}),
        (
            ToolAnnotations(read_only_hint=True, destructive_hint=True),
            {"beckon.dev/read-only": "true", "beckon.dev/idempotent": "true"},
        ),
        (ToolAnnotations(destructive_hint=True), {"beckon.dev/destructive": "true"}),
        (
            ToolAnnotations(destructive_hint=False, idempotent_hint=True),
            {"beckon.dev/destructive": "false", "beckon.dev/idempotent": "true"},
        ),
    ],
)
def test_what_the_server_says_of_a_tool_becomes_annotations(
    said: ToolAnnotations | None, hints: dict[str, str]
) -> None:
    found = become(Tool(name="a", input_schema=SCHEMA, annotations=said))

    assert isinstance(found, ImportedTools)
    assert found.hints == hints


def test_the_schema_of_the_results_becomes_an_annotation() -> None:
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "x-a": 1}
    found = become(Tool(name="a", input_schema=SCHEMA, output_schema=schema))
    broken = become(Tool(name="a", input_schema=SCHEMA, output_schema={"type": "object", "required": 5}))

    assert isinstance(found, ImportedTools)
    assert json.loads(found.annotations["beckon.dev/returns"]) == schema
    assert isinstance(broken, ImportedTools)
    assert "beckon.dev/returns" not in broken.annotations
    assert "its outputSchema is left out" in broken.notes[0]


def test_a_tool_that_cannot_be_one_is_skipped_with_the_reason() -> None:
    broken = become(Tool(name="a", input_schema={"type": "object", "properties": 5}))
    first, twin = import_tools(
        [Tool(name="read_file", input_schema=SCHEMA), Tool(name="readFile", input_schema=SCHEMA)], FILES
    )

    assert isinstance(broken, Skipped)
    assert "its parameters cannot be used" in broken.reason
    assert isinstance(first, ImportedTools)
    assert twin == Skipped("readFile", "files.read-file", "another tool is called files.read-file already")


def test_a_tool_without_a_description_is_described_by_its_name() -> None:
    found = become(Tool(name="a", input_schema=SCHEMA))

    assert isinstance(found, ImportedTools)
    assert found.description == "Call the tool a."


@pytest.mark.parametrize(
    ("word", "meant"),
    [("read_*", ["read_file"]), ("files_Read_File", ["read_file"]), ("*file", ["read_file", "dropFile"])],
)
def test_tools_are_chosen_by_their_name_at_the_server_and_by_what_a_model_calls_them(
    word: str, meant: list[str]
) -> None:
    tools = [Tool(name=name, input_schema=SCHEMA) for name in ("read_file", "dropFile", "stop")]

    assert [each.what for each in import_tools(tools, FILES, [word])] == meant


def test_a_word_that_means_no_tool_is_reported_with_the_nearest_one() -> None:
    with pytest.raises(NoSource, match="means no tool; did you mean 'read_file'"):
        import_tools([Tool(name="read_file", input_schema=SCHEMA)], FILES, ["read_fil"])


def test_a_list_shows_what_a_model_will_call_each_tool_and_writes_nothing(tmp_path: Path) -> None:
    listed = beckon("import", "mcp", "--name", "numbers", "--list", "--strict", "--", *SERVER, cwd=tmp_path)

    first, *_, counts = listed.stdout.splitlines()
    assert listed.returncode == 0, listed.stderr
    assert first.startswith("numbers_add  add  Add two numbers")
    assert counts == "numbers: 17 tools, 17 imported, 0 skipped"
    assert list(tmp_path.iterdir()) == []


def test_what_the_owner_of_the_adapter_sets_is_reported_for_a_server_behind_a_url() -> None:
    server = Server("files", Place("http://files.default.svc:8080/mcp?key=1"), "mine")
    results = tuple(import_tools([Tool(name="a", input_schema=SCHEMA)], server))
    source = Source("the MCP server files", "--name")

    said = [
        line.plain
        for line in required_settings(
            ImportSource("mcp", "tool", "files", "mcp-files", source, frozenset("a"), results)
        )
    ]

    host = "http://files.default.svc:8080"
    assert said[1:] == [
        f"""BECKON_ADAPTER_ALLOWED_HOSTS="[{{host: '{host}', private: true}}]\"""",
        f"BECKON_ADAPTER_CREDENTIALS='[{{name: mine, hosts: [{host}], type: bearer, file: mine.secret}}]'",
    ]


def test_what_is_printed_passes_the_check_and_is_routed() -> None:
    done = beckon("import", "mcp", "--name", "numbers", "--", *SERVER)

    resources = list(parse_manifests(done.stdout, "printed"))
    report = check(resources)
    assert done.returncode == 0, done.stderr
    assert [finding for finding in report.findings if finding.severity == "error"] == []
    assert list(check_rules(resources)) == []
    assert set(report.catalogue.tools) >= {"numbers_add", "numbers_die_once"}
    assert "17 tools, 17 imported, 0 skipped" in done.stderr


def test_importing_again_replaces_what_it_wrote_and_nothing_else(tmp_path: Path) -> None:
    first = beckon("import", "mcp", "--name", "numbers", "--output", str(tmp_path), "--", *SERVER)
    (tmp_path / "mine.yaml").write_text("{}")
    again = beckon(
        "import",
        "mcp",
        "--name",
        "numbers",
        "--select",
        "add",
        "--output",
        str(tmp_path),
        "--json",
        "--",
        *SERVER,
    )

    assert first.returncode == again.returncode == 0, first.stderr + again.stderr
    assert json.loads(again.stdout)["files"]["changed"] == ["mcp-numbers.yaml"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mcp-numbers.yaml", "mine.yaml"]
    text = (tmp_path / "mcp-numbers.yaml").read_text()
    assert "numbers.add" in text
    assert "numbers.say" not in text


@contextmanager
def stranger(answer: Callable[[dict[str, object]], object]) -> Iterator[str]:
    """Serve what answers each request with JSON of its own."""

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(answer(request)).encode())

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/mcp"
        server.shutdown()
        thread.join()


def of_1999(request: dict[str, object]) -> object:
    """Return the answer of a server with a version of MCP that no client knows."""
    known = {"jsonrpc": "2.0", "id": request.get("id")}
    if request["method"] != "initialize":
        return {**known, "error": {"code": -32601, "message": "no such method"}}
    server = {"name": "old", "version": "1"}
    return {**known, "result": {"protocolVersion": "1999-01-01", "capabilities": {}, "serverInfo": server}}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda _: {"secret": "s3cret"}, "MCPError: Failed to parse JSON response"),
        (of_1999, "RuntimeError: Unsupported protocol version from the server: 1999-01-01"),
    ],
)
def test_a_server_that_speaks_no_known_mcp_is_refused_in_one_line(
    answer: Callable[[dict[str, object]], object], reason: str
) -> None:
    with stranger(answer) as url:
        done = beckon("import", "mcp", url)

    assert done.returncode == 2
    assert done.stderr.startswith(f"beckon: {url} gave no tools: {reason}")
    assert done.stderr.count("\n") == 1
    assert "s3cret" not in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--select", "nothing", "--", *SERVER), "--select 'nothing' means no tool"),
        ((), "name a server"),
        (("http://127.0.0.1:1/mcp",), "gave no tools: ConnectError"),
        (("--", "/no/such/program"), "there is no program /no/such/program here"),
        (("--", "true"), "gave no tools: MCPError"),
        (("--json", "--", "true"), "--json needs --output or --list"),
        (("--token-file", "/no/such/file", "https://a.example/mcp"), "cannot read or write /no/such/file"),
    ],
)
def test_what_cannot_be_imported_is_one_line(words: tuple[str, ...], said: str) -> None:
    done = beckon("import", "mcp", *words)

    assert done.returncode == (1 if said.startswith("cannot") else 2)
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
