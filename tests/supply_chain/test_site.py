"""The site of the docs: every page, links that hold, and search."""

import json
import re
from pathlib import Path

import pytest

from supply_chain.release import current_version
from supply_chain.site import find_broken_links, list_pages, main, read_navigation, rewrite_page

PAGES = list_pages()
SOURCE = "https://git.example/beckon/v1"
PICTURE = '<picture><source srcset="images/a-dark.png"><img src="images/a.png"></picture>'


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "site"
    for other in ("0.0.9", "0.0.10", "99.0rc1", "images"):
        (folder / other).mkdir(parents=True)
        (folder / other / "index.html").write_text("earlier")
    assert main([str(folder), "--source", SOURCE]) == 0
    return folder / current_version()


def test_a_reader_selects_among_the_versions_that_are_there(site: Path) -> None:
    listed = json.loads((site.parent / "versions.json").read_text())

    assert [one["version"] for one in listed] == ["99.0rc1", current_version(), "0.0.10", "0.0.9"]
    assert [one["aliases"] for one in listed] == [[], ["latest"], [], []]
    assert f'url={current_version()}/"' in (site.parent / "index.html").read_text()
    assert (site.parent / "0.0.9" / "index.html").read_text() == "earlier"
    assert '"provider":"mike"' in (site / "index.html").read_text().replace(" ", "")


def test_each_page_is_built_and_can_be_searched(site: Path) -> None:
    built = {path.relative_to(site).as_posix() for path in site.rglob("index.html")}
    expected = {
        page if page.endswith("index.md") else page.removesuffix(".md") + "/index.md"
        for page in PAGES.values()
    }

    assert {page.replace("index.md", "index.html") for page in expected} <= built
    (index,) = site.rglob("search*.json")
    assert "Open WebUI" in json.dumps(json.loads(index.read_text()))


def test_blocks_of_code_are_whole_and_links_lead_to_pages_or_sources(site: Path) -> None:
    page = (site / "install" / "index.html").read_text()

    assert 'id="remove-it"' in page
    assert "kubectl delete -k deploy" in re.sub("<[^>]*>", "", page)
    assert f'href="{SOURCE}/charts/beckon/README.md"' in page


def test_the_navigation_has_each_page_of_the_index_once() -> None:
    groups = [value for group in read_navigation(PAGES) for value in group.values()]
    listed = [page for group in groups if isinstance(group, list) for page in group]

    assert len(listed) == len(set(listed))
    assert {"readme.md", "install.md", "a2a.md", "decisions/index.md", "security.md"} <= set(listed)


@pytest.mark.parametrize(
    ("line", "source", "rewritten"),
    [
        ("[a](../README.md#two-commands)", "", "[a](readme.md#two-commands)"),
        ("[a](decisions/) and [b](runs.md)", "", "[a](decisions/index.md) and [b](runs.md)"),
        ("[a](../tests/conftest.py)", SOURCE, f"[a]({SOURCE}/tests/conftest.py)"),
        ("[a](../tests/conftest.py)", "", "a"),
        ("[a](https://a.example/) [b](#here)", SOURCE, "[a](https://a.example/) [b](#here)"),
        ("![a](images/page.png)", "", "![a](images/page.png)"),
        (PICTURE, "", '<img src="images/a.png#only-light"><img src="images/a-dark.png#only-dark">'),
        ("```console cluster\n[a](../x)\n```", "", "```console\n[a](../x)\n```"),
    ],
)
def test_links_hold_on_the_site(line: str, source: str, rewritten: str) -> None:
    assert rewrite_page(line, "docs/agents.md", PAGES, source) == rewritten


def test_a_link_to_nothing_is_found(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    links = "".join(
        f'<a href="{to}">x</a>' for to in ("a/", "a/#there", "a/#gone", "b/", "https://x.example/")
    )
    (tmp_path / "index.html").write_text(f'<p id="top">{links}<img src="none.png"><source srcset="dark.png">')
    (tmp_path / "a" / "index.html").write_text('<h2 id="there">There</h2><a href="../#top">up</a>')

    assert sorted(find_broken_links(tmp_path)) == [
        "a/#gone in index.html",
        "b/ in index.html",
        "dark.png in index.html",
        "none.png in index.html",
    ]


def test_a_wrong_address_of_the_sources_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "site"), "--source", "git.example"]) == 2
    assert capsys.readouterr().err.startswith("site: 'git.example' is no address of the sources; write one")
    assert not (tmp_path / "site").exists()
