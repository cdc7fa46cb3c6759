"""The house has one word for each thing; `word_rules` lists those that were given up."""

from collections import Counter
from pathlib import Path

import pytest

from tests.house.source_tree import build_module, read_modules
from tests.house.word_rules import (
    list_findings,
    list_in_names,
    list_in_statements,
    list_in_test_names,
    list_in_text,
    list_shared_class_names,
    list_stored_names,
)


def test_words_that_were_given_up_do_not_come_back() -> None:
    assert list_findings() == []


@pytest.mark.parametrize(
    "text",
    ["class Kit: ...", "x = errand.kit", "build_process_kit()", "# whoever calls it", "that is\n  none"],
)
def test_a_word_in_the_text_is_seen(text: str) -> None:
    assert Counter(word for word, _ in list_in_text("a.py", text)).total() >= 1


@pytest.mark.parametrize("text", ["Kitchen", "kitten", "ERRAND", "The scenery mentions desks", "This is nonexistent"])
def test_other_words_are_not(text: str) -> None:
    assert list(list_in_text("a.py", text)) == []


def test_a_name_is_seen_and_a_sentence_is_not() -> None:
    text = '"""As given."""\nfield_given = given.said  # as told\n'
    assert sorted(word for word, _ in list_in_names("a.py", text)) == ["given", "given", "said"]


def test_a_name_inside_a_statement_is_seen_unless_the_schema_has_it() -> None:
    text = '''"""As given."""
GET = sql(f"""
    WITH kept AS (SELECT id FROM customers WHERE company_id = $1)
    SELECT {COLUMNS}, told.at FROM kept JOIN bells AS told ON told.bell = kept.id AND given IS NULL""")
'''
    stored = list_stored_names("CREATE TABLE bells (bell text, given text) -- as it was told\n")
    assert sorted(word for word, _ in list_in_statements("queries.py", text, stored)) == ["kept", "kept", "told"]


def test_a_word_in_the_name_of_a_test_is_seen() -> None:
    text = "def test_whoever_mends_it(): ...\ndef mend(): ...\n"
    assert [word for word, _ in list_in_test_names("tests/test_errand.py", text)] == ["whoever", "mends", "errand"]


def test_every_kind_of_file_is_read(tmp_path: Path) -> None:
    for name in ("src/sapa/a.py", "src/sapa/b/README.md", "docs/a.md", "README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("# mend\n")
    (tmp_path / "src/sapa/db/migrations").mkdir(parents=True)
    (tmp_path / "src/sapa/db/migrations/__init__.py").write_text("# mend\n")
    assert len(list_findings(tmp_path)) == 4


def test_no_public_class_name_stands_in_two_modules() -> None:
    assert list_shared_class_names(read_modules()) == []


def test_a_class_name_in_two_modules_is_seen() -> None:
    texts = {
        "sapa.orders.types": "class Line: ...",
        "sapa.imports.types": "class Line: ...",
        "sapa.shipping.carriers.dash.wire": "class Line: ...",
        "sapa.support.types": "class _Own: ...",
        "sapa.support.actions": "class _Own: ...",
    }
    modules = {name: build_module(name, text) for name, text in texts.items()}
    assert list_shared_class_names(modules) == ["Line: orders.types, imports.types"]
