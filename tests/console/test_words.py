"""Both languages have the same texts."""

import re
from pathlib import Path
from string import Formatter

import pytest

from sapa.console.agent_pages import ASSIGNEES
from sapa.console.consent_pages import AUTOMATIC
from sapa.console.error_words import name_column
from sapa.console.rendering import HERE
from sapa.console.reward_pages import DISCOUNTS, EXPIRATIONS
from sapa.console.settings_pages import EARN_ON, ROUNDINGS, UNITS
from sapa.console.support_setting_pages import LISTS
from sapa.console.translations import read_translations, translate
from sapa.console.webhook_pages import list_kinds
from sapa.db.pool import Database
from sapa.domains import ROUTES
from sapa.imports.sources.spreadsheet_fields import FIELDS
from sapa.messaging.channels.registry import CHANNEL_NAMES, CHANNELS
from sapa.shipping.carriers.registry import CARRIERS
from sapa.timeline.types import TYPES
from tests.conftest import Installation
from tests.console.people import make_person, open_browser, read_token
from tests.factories import Environments

_SAID = re.compile(r"""\bt\(\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')""")
_SEVERAL = re.compile(r"\{n\} (?!ms\b)([a-z]+ )*[a-z]+s\b(?! \d)")
_CODE = re.compile(r"[a-z]+(_[a-z0-9]+)+|[A-Z][A-Z_]+|[a-z]+([A-Z][a-z]+)+|url|otp|[ms]pm")
_RECORDS = re.compile(r"record\w*\(|noted|action = ")
_ACTION = re.compile(r'"([a-z]+\.[a-z_]+)"')
_SETTING = re.compile(r'"settings\.changed", "([^"]+)"')
SOURCES = sorted(HERE.parent.rglob("*.py"))
TEMPLATES = sorted((HERE / "templates").glob("*.html"))


def list_texts(template: Path) -> list[str]:
    return [double or single for double, single in _SAID.findall(template.read_text())]


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_every_text_of_a_page_is_translated(template: Path) -> None:
    assert [text for text in list_texts(template) if text not in read_translations("id")] == []


def test_a_translation_fills_in_the_same_names() -> None:
    def names(text: str) -> set[str]:
        return {name for _, name, _, _ in Formatter().parse(text) if name}

    assert {text for text, translated in read_translations("id").items() if names(text) != names(translated)} == set()


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_a_text_about_several_has_words_for_one(template: Path) -> None:
    several = [text for text in list_texts(template) if _SEVERAL.search(text)]
    assert [text for text in several if f"one {text}" not in read_translations("en")] == []


@pytest.mark.parametrize(
    ("language", "n", "said"), [("en", "1", "1 point"), ("en", "1,001", "1,001 points"), ("id", "1", "1 poin")]
)
def test_one_is_not_several(language: str, n: str, said: str) -> None:
    assert translate(language, "{n} points", n=n) == said


async def test_an_error_is_shown_in_the_readers_language(
    installation: Installation, database: Database, company: Environments
) -> None:
    async with open_browser(installation, await make_person(database, company)) as owner:
        form = {"token": await read_token(owner), "language": "id", "next": "/console/live"}
        assert (await owner.post("/language", data=form)).status_code == 303
        assert "Tidak ditemukan" in (await owner.get("/live/orders/order_0")).text
        assert "Halaman kedaluwarsa" in (await owner.post("/live/keys", data={})).text
        name = await owner.post("/live/settings/company", data=form | {"name": "x" * 101})
        assert '<p class="problem" id="name-problem">harus 1 sampai 100 karakter yang dapat dicetak</p>' in name.text
        assert "<p>Periksa isian yang ditandai.</p>" in name.text
        page = (await owner.get("/live/orders?page=0")).text
        assert "<p>halaman: pakai 1 sampai " in page


@pytest.mark.parametrize("language", ["en", "id"])
def test_entries_of_the_audit_log_have_words(language: str) -> None:
    lines = [line for file in SOURCES for line in file.read_text().splitlines() if _RECORDS.search(line)]
    actions = {action for line in lines for action in _ACTION.findall(line)}
    assert len(actions) > 40
    settings = {setting for line in lines for setting in _SETTING.findall(line)} | {one.path for one in LISTS}
    wanted = actions | {f"setting {name}" for name in settings}
    assert sorted(wanted - set(read_translations(language))) == [], f"add them to console/words/{language}.json"


@pytest.mark.parametrize("language", ["en", "id"])
def test_the_choices_of_a_setting_are_words(language: str) -> None:
    """English needs none for a code that is the word itself."""
    own = {"created", "fulfilled", "paid", "minutes", "hours", "days", "percentage"} if language == "en" else set()
    choices = {*EARN_ON, *ROUNDINGS, *UNITS, *AUTOMATIC, *DISCOUNTS, *EXPIRATIONS, *ASSIGNEES}
    assert sorted(choices - own - set(read_translations(language))) == []


@pytest.mark.parametrize("text", TYPES)
def test_timeline_entries_are_translated(text: str) -> None:
    assert text in read_translations("id")


def test_no_code_of_the_api_is_a_text_in_english() -> None:
    """What has a word in Indonesian has one in English."""
    codes = {text for text in read_translations("id") if _CODE.fullmatch(text)} - {"COD", "ID"}
    assert len(codes) > 50
    assert sorted(codes - set(read_translations("en"))) == []


def test_the_meaning_of_every_event_is_translated() -> None:
    """And whole: a sentence goes on in the next line of the source."""
    meanings = [meaning for _, meaning in list_kinds()]
    assert ROUTES
    assert [meaning for meaning in meanings if meaning not in read_translations("id")] == [], "add to words/id.json"
    assert [meaning for meaning in meanings if not meaning.endswith(".")] == []


@pytest.mark.parametrize("language", ["en", "id"])
def test_channel_names_are_translated(language: str) -> None:
    missing = [name for name in CHANNEL_NAMES if name not in read_translations(language)]
    assert missing == [], f"add them to console/words/{language}.json"


def test_the_fields_of_accounts_are_translated() -> None:
    """English needs no entry: a label is its own English text."""
    fields = [field for channel in CHANNELS.values() for field in channel.fields]
    fields += [field for carrier in CARRIERS.values() for field in carrier.fields]
    texts = {text for field in fields for text in (field.label, field.hint) if text}
    assert sorted(texts - set(read_translations("id"))) == [], "add them to console/words/id.json"


@pytest.mark.parametrize("language", ["en", "id"])
def test_the_fields_of_imported_files_have_words(language: str) -> None:
    fields = {field.name for fields in FIELDS.values() for field in fields}
    assert sorted(name for name in fields if name_column(language, name) == name.rpartition(".")[2]) == []
