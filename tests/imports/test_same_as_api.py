"""A file imports whatever the API accepts, with the same result."""

import asyncio
import csv
import io
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sapa.customers.profile import build_profile
from sapa.customers.types import CustomerIn
from sapa.db.pool import open_database
from sapa.http.errors import Invalid
from sapa.values.company import Company
from sapa.values.emails import BadEmail, _validate
from sapa.values.spreadsheet_cells import escape_formula, unescape_formula
from tests import depth
from tests.conftest import Installation, connect
from tests.factories import make_company, make_key
from tests.imports.files import list_all, run_import, without_ids, write, write_ndjson

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)
tag = text.map(str.strip).filter(lambda word: word and "," not in word)
address = st.fixed_dictionaries({"address1": text}, optional={"city": text, "zip": text, "mainAddress": st.just(False)})
value = text | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-1e9, 1e9, allow_nan=False)
customer = st.fixed_dictionaries(
    {},
    optional={
        "firstName": text,
        "lastName": text,
        "imageUrl": text.map("https://x/{}".format),
        "tags": st.lists(tag, max_size=3),
        "addresses": st.lists(address, max_size=2),
        "additionalData": st.dictionaries(text, value, max_size=3),
        "subscriptionStatus": st.just([{"app": "CRM", "status": "subscribe"}]),
    },
)


@settings(max_examples=depth.examples(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(customers=st.lists(customer, min_size=1, max_size=8), has_own_ids=st.booleans())
def test_a_file_imports_the_same_as_posting(
    installation: Installation, customers: list[dict[str, Any]], has_own_ids: bool
) -> None:
    people = [
        {**one, "email": f"customer{n}@example.com", **({"externalId": f"=own {n}"} if has_own_ids else {})}
        for n, one in enumerate(customers)
    ]
    asyncio.run(compare(installation, people))


async def compare(installation: Installation, customers: list[dict[str, Any]]) -> None:
    async with open_company(installation) as (_, posted):
        for one in customers:
            response = await posted.post("/customers", json=one)
            assert response.status_code == 201, response.text
        expected = by_email(await list_all(posted, "customers"))
    with TemporaryDirectory() as folder:
        files = [
            write_ndjson(Path(folder) / "customers.ndjson", customers),
            write(Path(folder) / "customers.csv", as_csv(customers)),
        ]
        for file in files:
            async with open_company(installation) as (company, imported):
                done = await asyncio.to_thread(run_import, installation, company, file, "customers")
                assert done.counts == (len(customers), 0, 0, 0), done.errors
                assert by_email(await list_all(imported, "customers")) == expected


@asynccontextmanager
async def open_company(installation: Installation) -> AsyncIterator[tuple[int, httpx.AsyncClient]]:
    """A fresh company's id, and its API."""
    async with open_database(installation.server.app_url) as database:
        company = await make_company(database)
        key = await make_key(database, company.live)
    async with connect(installation, key.raw) as api:
        yield company.live, api


def by_email(customers: list[dict[str, Any]]) -> dict[str, Any]:
    return {one["email"]: without_ids(one) for one in customers}


def as_csv(customers: list[dict[str, Any]]) -> str:
    names = sorted({name for one in customers for name in one})
    output = io.StringIO()
    csv.writer(output).writerows([names, *([cell(one.get(name)) for name in names] for one in customers)])
    return output.getvalue()


def cell(value: Any) -> str:
    if value is None:
        return ""
    return escape_formula(value if isinstance(value, str) else msgspec.json.encode(value).decode())


@given(st.text("'=+-@\t\r\n;\"0a.", max_size=8))
def test_a_disarmed_cell_is_not_a_formula_and_is_read_back_unchanged(text: str) -> None:
    safe = escape_formula(text)
    assert unescape_formula(safe) == text
    if safe[1:].replace(".", "").isdigit():
        return
    for separators in (";", "\t", ";\n", "\t\n"):
        cells = re.split(f"[{separators}]", safe)
        assert not [cell for cell in cells if cell.lstrip('"')[:1] in {*"=@+-\r"}]


plain = st.from_regex(r"[A-Za-z0-9_+.-]{1,12}@[A-Za-z0-9-]{1,8}(\.[A-Za-z0-9-]{1,8}){0,3}", fullmatch=True)
odd = st.builds("{}@{}".format, st.text("aZ9_+-.@!é' ", max_size=12), st.text("aZ9-.é", max_size=12))


@settings(max_examples=depth.examples(500), deadline=None)
@given(plain | odd)
def test_plain_addresses_are_judged_as_the_validator_would(email: str) -> None:
    try:
        expected = _validate(email.strip())
    except BadEmail:
        expected = None
    try:
        found = build_profile(COMPANY, CustomerIn(email=email)).email
    except Invalid:
        found = None
    assert found == expected


COMPANY = Company(1, "test", "ID", "IDR")
