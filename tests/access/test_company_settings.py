"""GET and PUT /company."""

from typing import Any

import httpx
import pytest

from sapa.access.types import Scope
from sapa.db.pool import Database
from tests.conftest import Installation, connect
from tests.customers.test_api import refusal
from tests.factories import Environments, make_customer, make_key, make_order


@pytest.mark.smoke
async def test_settings_are_read_and_changed_field_by_field(api: httpx.AsyncClient, company: Environments) -> None:
    before = (await api.get("/company")).json()["data"]
    assert before == {
        "id": company.live,
        "name": company.name,
        "environment": "live",
        "country": "ID",
        "currency": "IDR",
        "language": "id",
        "timeZone": "Asia/Jakarta",
        "cartOrders": False,
    }
    changes = {"timeZone": "Asia/Jayapura", "language": "en", "currency": "SGD", "country": "SG", "cartOrders": True}
    for field, value in changes.items():
        response = await api.put("/company", json={field: value})
        assert response.status_code == 200, response.text
        before[field] = value
        assert response.json()["data"] == before
    assert (await api.get("/company")).json()["data"] == before
    assert (await api.put("/company", json={})).json()["data"] == before


async def test_a_change_acts_on_the_next_calls(
    api: httpx.AsyncClient, installation: Installation, database: Database, company: Environments
) -> None:
    await api.put("/company", json={"currency": "USD", "country": "US"})
    async with connect(installation, (await make_key(database, company.live)).raw) as fresh:
        assert (await make_order(fresh))["currency"] == "USD"
        assert (await make_customer(fresh, phoneNumber="(212) 555-2368"))["phoneNumber"] == "+12125552368"
    async with connect(installation, (await make_key(database, company.test)).raw) as sandbox:
        assert (await sandbox.get("/company")).json()["data"]["currency"] == "IDR", "the other environment has its own"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"timeZone": "Asia/Bandung"}, "timeZone"),
        ({"timeZone": "../Asia/Jakarta"}, "timeZone"),
        ({"timeZone": "WIB"}, "timeZone"),
        ({"timeZone": "EST5EDT"}, "timeZone"),
        ({"timeZone": "posixrules"}, "timeZone"),
        ({"timeZone": "posix/Asia/Jakarta"}, "timeZone"),
        ({"timeZone": ""}, "timeZone"),
        ({"timeZone": None}, "timeZone"),
        ({"language": "fr"}, "language"),
        ({"currency": "XXX"}, "currency"),
        ({"currency": "idr"}, "currency"),
        ({"country": "id"}, "country"),
        ({"country": "XX"}, "country"),
        ({"name": "x"}, "name"),
    ],
)
async def test_a_wrong_setting_is_refused_by_name(api: httpx.AsyncClient, body: dict[str, Any], field: str) -> None:
    before = (await api.get("/company")).json()
    response = await api.put("/company", json=body)
    assert refusal(response, 400, "VALIDATION_ERROR")["details"][0]["field"] == field
    assert (await api.get("/company")).json() == before


async def test_scopes(installation: Installation, database: Database, company: Environments) -> None:
    writes = [Scope.CUSTOMERS_WRITE, Scope.ORDERS_WRITE, Scope.PRODUCTS_WRITE]
    cases: list[tuple[list[str], bool, bool]] = [
        ([Scope.ORDERS_READ], True, False),
        ([*writes], False, True),
        ([*writes[:2]], False, False),
        ([Scope.ANALYTICS_READ], False, False),
    ]
    for scopes, may_read, may_write in cases:
        async with connect(installation, (await make_key(database, company.live, scopes=scopes)).raw) as caller:
            assert (await caller.get("/company")).is_success is may_read
            assert (await caller.put("/company", json={})).is_success is may_write
