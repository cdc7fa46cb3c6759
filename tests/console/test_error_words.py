"""What errors say at the console: in both languages, by what went wrong, in the words of the form."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import get_args

import httpx
import pytest

from sapa.console.error_words import EMPTY, build_error_page, name_field, show_cause, translate_message
from sapa.console.pages import PARTS
from sapa.console.rendering import HERE
from sapa.console.support_setting_pages import LISTS
from sapa.console.translations import LANGUAGES, read_error_words, read_translations
from sapa.db.pool import Database
from sapa.domains import ROUTES
from sapa.http.errors import ApiError, Invalid
from sapa.imports.values.amounts import SCIENTIFIC_ADVICE
from sapa.imports.values.dates import ADVICE as DATE_ADVICE
from sapa.runtime.http_connection import HeadersTooLarge
from sapa.shipping import carriers
from sapa.values.provider_refusals import RefusalCategory
from tests.conftest import Installation
from tests.console.people import make_person, open_browser, read_token
from tests.console.seats import read
from tests.factories import Environments, make_order

DECLARED = (PARTS, ROUTES, HeadersTooLarge)
"""Every error is declared by now."""
ELSEWHERE = {
    "ALREADY_RATED": "the page of a rating",
    "HEADERS_TOO_LARGE": "the HTTP server",
    "INVALID_API_KEY": "calls of the API",
    "INVALID_HASH": "the web chat",
    "INVALID_SESSION": "the web chat",
    "INVALID_SIGNATURE": "callbacks of channels",
    "INVALID_TOKEN": "`sapa listen`",
    "INVALID_VERIFY_TOKEN": "callbacks of channels",
    "IP_NOT_ALLOWED": "calls of the API",
    "MISSING_API_KEY": "calls of the API",
    "NO_SUCH_CHOICE": "the web chat",
    "ORIGIN_NOT_ALLOWED": "the web chat",
    "TEST_KEY_REQUIRED": "the simulators' endpoints",
}
"""Codes that no page can show, and where they belong."""
NO_PAGES = (
    "backups", "cli", "db", "demo", "http", "mcp", "messaging/widget", "runtime", "sandbox", "settings",
    "shipping/areas/files", "webhooks/listen", "webhooks/tokens",
)  # fmt: skip
"""Rooms whose errors are for programs and operators."""
_SHOWN_AT = re.compile(r'\b(?:field|money|complaint)\(error, "([\w.]*\w)"')
_SAMPLE = "12"
CARRIERS_FOLDER = Path(carriers.__path__[0])
NOTE = re.compile(r'QuoteNote\([\w.]+, "(\w+)"')


def list_classes(base: type[ApiError] = ApiError) -> Iterator[type[ApiError]]:
    """All but those of MCP, and of tests."""
    for error in base.__subclasses__():
        if error.__module__.startswith("sapa.") and not error.__module__.startswith("sapa.mcp."):
            yield error
        yield from list_classes(error)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_error_that_a_page_can_show_has_words(language: str) -> None:
    words = read_error_words(language)
    shown = {error for error in list_classes() if error.code not in ELSEWHERE}
    assert len(shown) > 100
    assert [
        error.__name__ for error in shown if not {f"error {error.__name__}", f"error {error.code}"} & set(words)
    ] == []


def test_no_indonesian_page_shows_the_english_summary() -> None:
    pages = {error.__name__: build_error_page("id", error()) for error in list_classes() if error.code not in ELSEWHERE}
    assert [name for name, page in pages.items() if page is None or 'lang="en"' in page.message] == []


def list_refused_fields() -> Iterator[tuple[str, str]]:
    """The field and the message of every `Invalid.field` of the console, with a sample for what is not fixed."""
    for file in sorted(HERE.glob("*.py")):
        for name, arguments in _list_errors(file):
            if name == "field" and arguments[1]:
                yield arguments[0], arguments[1]


def list_messages() -> Iterator[str]:
    """What errors say about one request, in every room that pages use."""
    names = {error.__name__ for error in list_classes()} | {"BadCell"}
    for file in sorted(HERE.parent.rglob("*.py")):
        if not str(file.relative_to(HERE.parent)).startswith(NO_PAGES):
            for name, arguments in _list_errors(file):
                if name == "field" or name in names:
                    yield arguments[-1] if name == "field" else arguments[0]


def _list_errors(file: Path) -> Iterator[tuple[str, list[str]]]:
    """The name and the arguments of every call that may make an error."""
    text = file.read_text()
    for node in ast.walk(ast.parse(text)) if "raise " in text or "Invalid" in text else ():
        if isinstance(node, ast.Call) and node.args:
            match node.func:
                case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="Invalid"), attr="field" as name):
                    yield name, [_read_text(argument) for argument in node.args]


def _read_text(node: ast.expr) -> str:
    """The text of a literal; of other expressions, nothing."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_read_text(part) or _SAMPLE for part in node.values)
    return ""


def test_every_message_is_translated() -> None:
    """But those that only add up what others say, and those that begin with a constant."""
    messages = {message for message in list_messages() if message.replace(_SAMPLE, "").strip(" :.")} - EMPTY
    messages -= {message for message in messages if message.startswith(f"{_SAMPLE}; ")}
    messages |= {f"{DATE_ADVICE}; it is 'x'", f"{DATE_ADVICE}; 'x' is not a month", SCIENTIFIC_ADVICE.format("6E+11")}
    assert len(messages) > 400
    assert [message for message in sorted(messages) if translate_message("id", message) is None] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_field_of_a_form_has_words(language: str) -> None:
    fields = {
        name for template in (HERE / "templates").glob("*.html") for name in _SHOWN_AT.findall(template.read_text())
    }
    fields |= {one.name for setting in LISTS for one in setting.fields if one.kind != "flag"}
    fields |= {field for field, _ in list_refused_fields() if field.isidentifier()}
    assert len(fields) > 80
    words = read_error_words(language)
    assert sorted(name for name in fields if f"field {name.rpartition('.')[2]}" not in words) == []


def test_words_of_errors_use_only_what_the_message_says() -> None:
    for language in LANGUAGES:
        for text, words in read_error_words(language).items():
            assert _list_names(words) <= _list_names(text), text
    assert set(read_error_words("en")) - set(read_error_words("id")) - set(read_translations("id")) == set()


def _list_names(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


@pytest.mark.parametrize(
    ("language", "message", "shown"),
    [
        ("en", "The payment is 60000; the outstanding amount of the order is 50000.", "The order still costs 50,000"),
        ("id", "The payment is 60000; the outstanding amount of the order is 50000.", "Sisa tagihan 50.000"),
        ("id", "The shipment is in_transit and cannot be cancelled.", "Pengiriman dalam perjalanan"),
        (
            "id",
            "The carrier refused the cancellation: too late",
            'Kurir menolak pembatalan: <span lang="en">too late</span>',
        ),
        ("en", "The carrier refused the cancellation: <b>", "The carrier refused the cancellation: &lt;b&gt;"),
        ("id", "must be yes or no (ya or tidak); it is 'mungkin'", "harus ya atau tidak, tetapi isinya “mungkin”"),
        ("id", "UTF-8, separated by semicolons", "UTF-8, dipisahkan titik koma"),
    ],
    ids=["amount-en", "amount-id", "state", "reason", "escaped", "cell", "file"],
)
def test_a_message_keeps_its_numbers_states_and_reasons(language: str, message: str, shown: str) -> None:
    translated = translate_message(language, message)
    assert translated is not None
    assert translated.startswith(shown)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_reason_of_a_channel_or_carrier_has_words(language: str) -> None:
    notes = {code for file in CARRIERS_FOLDER.rglob("*.py") for code in NOTE.findall(file.read_text())}
    assert len(notes) > 5
    kinds = {f"refusal {category}" for category in get_args(get_args(RefusalCategory)[0])}
    kinds |= {f"quote {code}" for code in notes}
    assert kinds - set(read_error_words(language)) == set()


def test_a_cause_is_said_in_the_readers_words_and_then_in_the_channels() -> None:
    said = show_cause("id", "refusal window", "Re-engagement <message>")
    assert said == 'Waktu balas habis. Kirim templat. <span lang="en">Re-engagement &lt;message&gt;</span>'
    own = show_cause("id", "quote no_service", "Dash offers no service for this route.", is_own=True)
    assert own == "Kurir ini tidak punya layanan untuk rute dan paket ini."
    assert "tidak terhubung" in show_cause("id", "refusal config", "The channel is no longer connected.")
    assert show_cause("id", "refusal None", "Code 7") == '<span lang="en">Code 7</span>'


def test_a_missing_field_is_asked_for_by_its_label() -> None:
    page = build_error_page("id", Invalid.field("addresses[0].address1", "is required"))
    assert page is not None
    assert page.details[0].message == "Isi jalan dan nomor"
    assert name_field("en", "shortcut") == "a shortcut"


async def test_an_indonesian_seller_reads_why_money_and_names_are_refused(
    installation: Installation, database: Database, company: Environments, api: httpx.AsyncClient
) -> None:
    order = await make_order(api, orderId="TOKO-1", lineItems=[{"title": "Kopi", "price": 50_000, "quantity": 1}])
    async with open_browser(installation, await make_person(database, company)) as owner:
        form = {"token": await read_token(owner)}
        await owner.post("/language", data=form | {"language": "id", "next": "/console/live"})
        paid = await owner.post(
            f"/live/orders/{order['id']}/payments", data=form | {"amount": "60.000", "method": "cash"}
        )
        assert (paid.status_code, '<span lang="en">' in paid.text) == (409, False), paid.text
        assert "Sisa tagihan Rp 50.000 ," in read(paid.text)
        for _ in range(2):
            label = await owner.post("/live/settings/labels", data=form | {"name": "VIP", "color": "#0f766e"})
        assert (label.status_code, '<span lang="en">' in label.text) == (409, False), label.text
        assert "Sudah ada label dengan nama ini" in label.text
        empty = await owner.post("/live/settings/saved-replies", data=form | {"text": "Halo"})
        assert "Isi singkatan" in empty.text
