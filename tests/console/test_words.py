"""Both languages say the same things."""

import re
from pathlib import Path
from string import Formatter

import pytest

from sapa.console.rendering import HERE
from sapa.console.words import read_words

_SAID = re.compile(r"""\bt\(\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')""")
TEMPLATES = sorted((HERE / "templates").glob("*.html"))


def list_texts(template: Path) -> list[str]:
    return [double or single for double, single in _SAID.findall(template.read_text())]


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_everything_a_page_says_is_said_in_indonesian(template: Path) -> None:
    assert [text for text in list_texts(template) if text not in read_words("id")] == []


def test_a_translation_fills_in_the_same_names() -> None:
    def names(text: str) -> set[str]:
        return {name for _, name, _, _ in Formatter().parse(text) if name}

    assert {text for text, said in read_words("id").items() if names(text) != names(said)} == set()
