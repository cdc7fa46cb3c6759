"""Amounts, counts, phone numbers and times as people write them, typed into forms in both languages."""

import httpx
import pytest

from sapa.access import actions as access
from sapa.db.pool import Database
from tests.conftest import Installation
from tests.console.people import make_person, open_browser, read_token
from tests.factories import Environments

AMOUNTS = {
    "id": [
        ("10.000", 10_000), ("10,000", 10_000), ("10000", 10_000), ("Rp 10.000", 10_000), ("Rp10.000", 10_000),
        ("rp. 10.000", 10_000), ("10.000,-", 10_000), ("10.000,00", 10_000), ("1.250.000", 1_250_000), ("25rb", 25_000),
        ("25 ribu", 25_000), ("1,5 jt", 1_500_000), ("2 juta", 2_000_000), ("7.500,50", 7_500.5), ("500", 500),
    ],
    "en": [
        ("10,000", 10_000), ("10.000", 10_000), ("10000", 10_000), ("Rp 10,000", 10_000), ("Rp10,000", 10_000),
        ("IDR 10,000", 10_000), ("10 000", 10_000), ("10,000.00", 10_000), ("1,250,000", 1_250_000), ("25k", 25_000),
        ("25rb", 25_000), ("1.5 jt", 1_500_000), ("2jt", 2_000_000), ("7,500.50", 7_500.5), ("500", 500),
    ],
}  # fmt: skip
PHONES = ["081234567{}", "0812-3456-7{}", "+62 812 3456 7{}", "62812 34567{}", "(0812) 3456 7{}", "+6281234567{}"]
COUNTS = [("1.000", 1_000), ("1,000", 1_000), ("12.345.678", 12_345_678), ("75", 75)]
TIMES = [
    ("2030-01-31T09:30", "2030-01-31T02:30:00.000Z"), ("2030-07-01T00:00", "2030-06-30T17:00:00.000Z"),
    ("2031-12-31T23:59", "2031-12-31T16:59:00.000Z"), ("2032-02-29T07:00", "2032-02-29T00:00:00.000Z"),
]  # fmt: skip


@pytest.mark.parametrize("language", ["id", "en"])
async def test_what_people_type_is_stored_as_meant(
    installation: Installation, database: Database, company: Environments, api: httpx.AsyncClient, language: str
) -> None:
    async with open_browser(installation, await make_person(database, company)) as browser:
        form = {"token": await read_token(browser)}
        await browser.post("/language", data=form | {"language": language, "next": "/console/live"})
        names = ("id", "compareAtPrice", "sku", "stock", "stockBefore")
        blank = {f"variant.{name}": "" for name in names}
        for text, meant in AMOUNTS[language]:
            typed = form | blank | {"name": text, "variant.title": "", "variant.price": text}
            made = await browser.post("/live/products/new", data=typed)
            product = (await api.get(f"/products/{made.headers['location'].rpartition('/')[2]}")).json()["data"]
            assert product["variants"][0]["price"] == meant, text
        for text, count in COUNTS:
            typed = form | blank | {"name": text, "variant.title": "", "variant.price": "500", "variant.stock": text}
            made = await browser.post("/live/products/new", data=typed)
            product = (await api.get(f"/products/{made.headers['location'].rpartition('/')[2]}")).json()["data"]
            assert product["variants"][0]["inventoryQuantity"] == count, text
        for number, spelling in enumerate(PHONES):
            typed = form | {"phoneNumber": spelling.format(800 + number)}
            made = await browser.post("/live/customers/new", data=typed)
            customer = (await api.get(f"/customers/{made.headers['location'].rpartition('/')[2]}")).json()["data"]
            assert customer["phoneNumber"] == f"+6281234567{800 + number}", spelling
        for text, instant in TIMES:
            typed = form | {"name": text, "scope": "customers:READ", "rate_limit": "100", "expires_at": text}
            assert (await browser.post("/live/keys", data=typed)).status_code == 200
            async with database.connection() as db:
                keys = await access.list_keys(db, company.live)
            assert next(key.expires_at for key in keys if key.name == text) == instant
