"""Files of rates: what is read, and what is refused with its line."""

from datetime import date
from decimal import Decimal

import pytest

from sapa.demo.shop import RATES
from sapa.http.errors import Invalid
from sapa.messaging.costs.rate_files import parse_rates
from sapa.messaging.costs.types import MessageRate

HEADER = "country,category,date_from,currency,price\n"
LINE = "ID,utility,2026-10-01,IDR,365.25\n"
RATE = MessageRate(None, "ID", "utility", date(2026, 10, 1), "IDR", Decimal("365.25"))


@pytest.mark.parametrize(
    "text",
    [
        HEADER + LINE,
        "\ufeff" + HEADER + LINE,
        (HEADER + LINE).replace("\n", "\r\n"),
        (HEADER + LINE).replace(",", ";"),
        (HEADER + LINE).replace(",", "\t"),
        "Price, Currency ,Date from,Category,COUNTRY\n365.250,idr,2026-10-01,UTILITY,id",
        HEADER + "\n,,,,\n" + LINE,
    ],
)
def test_files_as_people_have_them_are_read(text: str) -> None:
    assert parse_rates(text.encode(), None) == [RATE]


def test_rates_of_one_company_are_its_own() -> None:
    (rate,) = parse_rates((HEADER + "*,service,2026-10-01,USD,0\n").encode(), 7)
    assert rate == MessageRate(7, "*", "service", date(2026, 10, 1), "USD", Decimal(0))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "The file has no rates."),
        (HEADER.encode(), "The file has no rates."),
        (b"\xff\xfeh", "The file is not UTF-8. Save it as CSV in UTF-8."),
        (b"a\0b", "The file is not text. Save it as CSV in UTF-8."),
        (b"country,price\nID,1\n", "The columns of the file must be country, category, date_from, currency, price"),
        ((HEADER + LINE + LINE).encode(), "Line 3: ID, utility, 2026-10-01, IDR is in the file twice."),
        ((HEADER + "ID,utility\n").encode(), "Line 2 has 2 cells, the header 5."),
        ((HEADER + '"ID,utility').encode(), "is not CSV"),
        ((HEADER + LINE.replace("ID,u", "Indonesia,u")).encode(), "Line 2: country must be an ISO 3166 code"),
        ((HEADER + LINE.replace("ID,u", "ZZ,u")).encode(), "Line 2: country must be an ISO 3166 code"),
        ((HEADER + LINE.replace("utility", "no way")).encode(), "Line 2: category must be"),
        ((HEADER + LINE.replace("2026-10-01", "01/10/2026")).encode(), "Line 2: date_from must be a date"),
        ((HEADER + LINE.replace("2026-10-01", "2026-W40-1")).encode(), "Line 2: date_from must be a date"),
        ((HEADER + LINE.replace("2026-10-01", "2026-13-01")).encode(), "Line 2: date_from must be a date"),
        ((HEADER + LINE.replace("IDR", "IRD")).encode(), "Line 2: currency must be an ISO 4217 code"),
        ((HEADER + LINE.replace("365.25", "")).encode(), "Line 2: price must be a number"),
        ((HEADER + LINE.replace("365.25", "-1")).encode(), "Line 2: price must be a number"),
        ((HEADER + LINE.replace("365.25", "1e5")).encode(), "Line 2: price must be a number"),
        ((HEADER + LINE.replace("365.25", "NaN")).encode(), "Line 2: price must be a number"),
        ((HEADER + LINE.replace("365.25", "0.123456789")).encode(), "Line 2: price must be a number"),
        ((HEADER + LINE.replace("365.25", "123456789012345.1")).encode(), "Line 2: price must be a number of at most"),
        ((HEADER + LINE.replace("365.25", "3.651,25")).encode(), "Line 2 has 6 cells, the header 5."),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_line(content: bytes, sentence: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse_rates(content, None)
    assert sentence in refused.value.message


def test_the_sample_has_a_rate_for_every_category_everywhere() -> None:
    rates = parse_rates(RATES.read_bytes(), None)
    for country in ("ID", "*"):
        categories = {rate.category for rate in rates if rate.country == country}
        assert categories >= {"marketing", "utility", "authentication", "service"}
    assert {rate.category for rate in rates if rate.country == "ID" and rate.starts_on == date(2026, 10, 1)} >= {
        "utility",
        "service",
    }
