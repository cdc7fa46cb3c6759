"""Money, numbers, times and phone numbers as a page writes them."""

import re
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from sapa.console.formats import Formats

NOW = datetime(2026, 11, 16, 3, 24, tzinfo=UTC)
"""10:24 in Jakarta, 12:24 in Jayapura."""


def test_money_follows_the_language() -> None:
    english, bahasa = Formats("en"), Formats("id")
    shown = [
        (english.money(174000, "IDR"), "Rp\u00a0174,000"),
        (bahasa.money(174000, "IDR"), "Rp\u00a0174.000"),
        (bahasa.money(Decimal("174000.50"), "IDR"), "Rp\u00a0174.000,50"),
        (english.money(Decimal("-12.5"), "USD"), "−USD\u00a012.50"),
        (english.money(1500, "JPY"), "JPY\u00a01,500"),
        (english.money(None, "IDR"), "–"),
    ]
    assert [re.sub("<[^>]*>", "", text) for text, _ in shown] == [wanted for _, wanted in shown]
    assert english.short_money(4_810_000, "IDR") == "Rp\u00a04.8M"
    assert bahasa.short_money(4_810_000, "IDR") == "Rp\u00a04,8\u00a0jt"
    assert bahasa.short_money(174_000, "IDR") == "Rp\u00a0174.000"
    assert (english.number(1234.5), bahasa.number(1234.5)) == ("1,234.5", "1.234,5")


@pytest.mark.parametrize(
    ("instant", "english", "bahasa"),
    [
        ("2026-11-16T03:23:30Z", "just now", "baru saja"),
        ("2026-11-16T03:12:00Z", "12 min ago", "12 menit lalu"),
        ("2026-11-16T02:20:00Z", "09:20", "09.20"),
        ("2026-11-15T18:00:00Z", "01:00", "01.00"),
        ("2026-11-15T09:40:00Z", "Yesterday 16:40", "Kemarin 16.40"),
        ("2026-05-12T02:41:00Z", "12 May 09:41", "12 Mei 09.41"),
        ("2025-08-12T02:41:00Z", "12 Aug 2025 09:41", "12 Agu 2025 09.41"),
        ("2026-11-16T09:00:00Z", "16:00", "16.00"),
    ],
)
def test_an_instant_is_shown_in_the_companys_time_zone(instant: str, english: str, bahasa: str) -> None:
    assert Formats("en", now=NOW).instant(instant).striptags() == english
    assert Formats("id", now=NOW).instant(instant).striptags() == bahasa


def test_a_stamp_names_its_zone() -> None:
    text = "2026-11-12T02:41:07Z"
    assert Formats("en").stamp(text) == "12 Nov 2026, 09:41 WIB"
    assert Formats("id", "Asia/Jayapura").stamp(text, seconds=True) == "12 Nov 2026, 11.41.07 WIT"
    assert Formats("en", "Europe/Amsterdam").stamp(text) == "12 Nov 2026, 03:41 CET"
    assert 'title="12 Nov 2026, 09:41 WIB"' in Formats("en", now=NOW).at(text)
    assert Formats("en").stamp("9999-12-31T23:59:59.999Z") == "31 Dec 9999, 23:59 WIB"
    assert "1 Jan 1 00:00" in Formats("en", "America/New_York", NOW).at("0001-01-01T00:00:00.000Z")


@pytest.mark.parametrize(
    ("number", "shown"),
    [("+6281298765432", "+62 812-9876-5432"), ("+6212", "+62 12"), ("visitor-1", "visitor-1"), (None, "–"), ("+", "+")],
)
def test_a_phone_number_is_grouped(number: str | None, shown: str) -> None:
    assert Formats("en").phone(number) == shown


@pytest.mark.parametrize("value", ["2026-03-31T17:30:00.000Z", "2026-04-01", date(2026, 4, 1)])
def test_a_day_is_the_companys(value: str | date) -> None:
    assert Formats("en").day_of(value) == "1 Apr 2026"
    assert Formats("id").day_of(value) == "1 Apr 2026"


@pytest.mark.parametrize(
    ("estimate", "english", "bahasa"),
    [
        ("1-2 days", "1-2 days", "1-2 hari"),
        ("1 day", "1 day", "1 hari"),
        ("2 - 3 Hari", "2 - 3 days", "2 - 3 hari"),
        ("4 - 6 hours", "4 - 6 hours", "4 - 6 jam"),
        ("Same Day", "Same Day", "Same Day"),
    ],
)
def test_a_carriers_estimate_has_its_units_in_the_readers_language(estimate: str, english: str, bahasa: str) -> None:
    assert (Formats("en").estimate(estimate), Formats("id").estimate(estimate)) == (english, bahasa)
