"""Three real APIs imported, served by their own descriptions, and called through the whole platform."""

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.run_beckon import beckon
from tests.e2e.conftest import Start
from tests.e2e.described_api import DescribedApi, serving
from tests.e2e.local_platform import LocalPlatform
from tests.shared_data import shared_data

DATA = shared_data("openapi")
# A bearer token and JSON bodies; a key in the query and lists; a key in a header and forms.
CHOSEN = {
    "spacetraders.io": ("tag:factions", "tag:agents", "purchase-cargo"),
    "europeana.eu": ("searchRecords", "getSingleRecordJson"),
    "gitlab.com": ("/v3/projects/{id}/issues", "/v3/projects/{id}/labels"),
}
SECRET = "secret-of-the-owner"

pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@dataclass
class Imported:
    """A platform with the tools of all three, and their APIs."""

    platform: LocalPlatform
    apis: dict[str, DescribedApi]

    def run(self, *words: str) -> str:
        """Run `beckon` beside the platform and return what it prints."""
        ended = beckon(*words, settings={"BECKON_PORT": str(self.platform.port)})
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout


@pytest.fixture(scope="module")
def imported(start_platform: Start, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imported]:
    folder = tmp_path_factory.mktemp("imported")
    (key := tmp_path_factory.mktemp("secrets") / "key").write_text(SECRET)
    hosts: list[str] = []
    credentials: list[str] = []
    with ExitStack() as stack:
        apis = {name: stack.enter_context(serving(DATA / f"{name}.json")) for name in CHOSEN}
        for name, api in apis.items():
            settings = import_into(folder, name, api)
            hosts.append(settings["BECKON_ADAPTER_ALLOWED_HOSTS"][1:-1])
            credentials.append(settings["BECKON_ADAPTER_CREDENTIALS"][1:-1])
        secrets = re.sub(r"file: [^,}]+", f"file: {key}", ", ".join(credentials))
        platform = start_platform(
            folder,
            BECKON_ADAPTER_ALLOWED_HOSTS=f"[{', '.join(hosts)}]",
            BECKON_ADAPTER_CREDENTIALS=f"[{secrets}]",
        )
        yield Imported(platform, apis)


def import_into(folder: Path, name: str, api: DescribedApi) -> dict[str, str]:
    """Import what is chosen of one API, and return the settings that were printed for the adapter's owner."""
    select = [word for chosen in CHOSEN[name] for word in ("--select", chosen)]
    source = str(DATA / f"{name}.json")
    ended = beckon("import", "openapi", source, "--server", api.url, "--output", str(folder), *select)
    assert ended.returncode == 0, ended.stderr
    lines = [line for line in ended.stdout.splitlines() if line.startswith("BECKON_")]
    return dict(shlex.split(line)[0].split("=", 1) for line in lines)


def test_everything_that_was_imported_is_offered(imported: Imported) -> None:
    assert imported.platform.tool_names() >= {
        "get_factions",
        "get_my_agent",
        "purchase_cargo",
        "search_records",
        "list_project_issues",
        "create_project_label",
    }
    assert "error" not in imported.run("check", str(imported.platform.folder)).split(",")[-2].split()[0]


def test_a_json_body_and_a_bearer_token_reach_the_api(imported: Imported) -> None:
    api = imported.apis["spacetraders.io"]

    printed = imported.run("call", "purchase_cargo", "shipSymbol=SHIP-1", "symbol=FUEL", "units=3")

    assert "POST /v2/my/ships/SHIP-1/purchase" in api.requests
    assert json.loads(printed)["data"]["transaction"]["units"] is not None


def test_lists_and_a_key_in_the_query_reach_the_api(imported: Imported) -> None:
    api = imported.apis["europeana.eu"]

    imported.run("call", "search_records", "query=Mona Lisa & co", 'qf=["TYPE:IMAGE", "YEAR:1503"]', "rows=2")

    assert [line.partition("wskey=")[0] for line in api.requests if "search.json" in line] == [
        "GET /record/v2/search.json?qf=TYPE%3AIMAGE&qf=YEAR%3A1503&query=Mona%20Lisa%20%26%20co&rows=2&"
    ]


def test_a_form_and_a_key_in_a_header_reach_the_api(imported: Imported) -> None:
    api = imported.apis["gitlab.com"]

    imported.run("call", "create_project_label", "id=group/project", "name=bug", "color=#ff0000")

    assert "POST /api/v3/projects/group%2Fproject/labels" in api.requests


def test_a_model_asks_an_imported_api(imported: Imported) -> None:
    api = imported.apis["spacetraders.io"]

    printed = imported.run("ask", "List all factions")

    assert "→ get_factions(" in printed
    assert any(line.startswith("GET /v2/factions") for line in api.requests)
    assert "[demo model] get_factions" in printed


def test_no_request_was_against_a_description_and_no_secret_came_back(imported: Imported) -> None:
    shown = imported.run("call", "get_my_agent")

    assert [api.refused for api in imported.apis.values()] == [[], [], []]
    assert SECRET not in shown + imported.platform.text()
