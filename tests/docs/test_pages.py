"""Which files are pages, and how their links change."""

from pathlib import Path

import pytest

from docs.generator.pages import INDEX, ROOT, BrokenLink, build_pages, list_pages, read_contents, relink

TREE = {
    "docs/README.md": "# Docs\n\n## Guides\n\n- [orders](orders.md)\n- [changes](../CHANGELOG.md)\n\n## Decisions\n\n"
    "- [1](decisions/0001-one.md)\n",
    "docs/orders.md": "# Orders\n\nSee [changes](../CHANGELOG.md#today), [SDK](../sdk/python/README.md), "
    "[code](../src/a.py), ![picture](a.png), [there](https://example.com), [reference](http://127.0.0.1:8000/"
    "customer/v1/docs).\n\n```md\n[not a link](nothing.md)\n```\n\n[decision](decisions/0001-one.md)\n",
    "docs/decisions/0001-one.md": "# 1. One\n\n[orders](../orders.md)\n",
    "docs/a.png": "",
    "src/a.py": "",
    "CHANGELOG.md": "# Changelog\n\n## Today\n\n[orders](docs/orders.md)\n",
    "sdk/python/README.md": "# Python\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_links_lead_from_page_to_page(tree: Path) -> None:
    pages = dict(build_pages(tree))
    orders = pages["orders.md"]
    assert "[changes](changelog.md#today)" in orders
    assert "[SDK](sdk/python.md)" in orders
    assert "[decision](decisions/0001-one.md)" in orders
    assert "[orders](orders.md)" in pages["changelog.md"]
    assert "[1](0001-one.md)" in pages["decisions/index.md"]
    assert '<a href="reference/customer/index.html">reference</a>' in orders


def test_what_is_not_a_page_stays_readable(tree: Path) -> None:
    orders = dict(build_pages(tree))["orders.md"]
    assert ", code, ![picture](a.png), [there](https://example.com)" in orders
    assert "```md\n[not a link](nothing.md)\n```" in orders


def test_the_sidebar_follows_the_index(tree: Path) -> None:
    pages = dict(build_pages(tree))
    assert ":caption: Guides\n\norders\nchangelog\n```" in pages["index.md"]
    assert "## Decisions" not in pages["index.md"]
    assert ":hidden:\n\n0001-one\n```" in pages["decisions/index.md"]
    assert ":hidden:\n\nsdk/python\n```" in pages["orders.md"], "a page that the index leaves out stands below another"


def test_a_link_to_nothing_and_a_page_that_nothing_leads_to_are_refused(tree: Path) -> None:
    with pytest.raises(BrokenLink, match=r"docs/orders\.md links to lost\.md"):
        relink(tree, "docs/orders.md", "[lost](lost.md)", list_pages(tree))
    (tree / "docs" / "lonely.md").write_text("# Lonely\n")
    with pytest.raises(BrokenLink, match=r"No page leads to docs/lonely\.md"):
        dict(build_pages(tree))


def test_every_page_of_the_repository_has_a_place_and_links_to_no_server() -> None:
    pages = dict(build_pages(ROOT))
    assert set(pages) == {*list_pages(ROOT).values(), "decisions/index.md"}
    assert [page for page, text in pages.items() if "](http://127.0.0.1" in text] == []
    assert INDEX not in {file for section in read_contents(ROOT) for file in section.files}
