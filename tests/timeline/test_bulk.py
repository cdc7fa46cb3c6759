"""Customers stored together get the same timeline entries as customers stored alone."""

import httpx

from sapa.customers import bulk
from sapa.customers.bulk import BulkCustomer
from sapa.customers.types import CustomerPatch
from sapa.db.pool import Database
from sapa.values.company import Company
from tests.factories import Environments


async def test_customers_stored_together_get_an_entry_each(
    api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    live = Company(company.live, "live", "ID", "IDR")

    async def store(names: dict[str, str]) -> None:
        customers = [
            BulkCustomer(f"own-{mail}", None, CustomerPatch(email=f"{mail}@example.com", first_name=name))
            for mail, name in names.items()
        ]
        async with database.transaction() as tx:
            assert None not in await bulk.store_together(tx, live, customers)

    await store({"a": "Ayu", "b": "Budi"})
    await store({"a": "Ayu Putri", "b": "Budi", "c": "Citra"})
    entries = {}
    for customer in (await api.get("/customers?sort=email:asc")).json()["data"]:
        page = (await api.get(f"/loyalty/customers/{customer['id']}/timeline")).json()
        entries[customer["email"][0]] = [(entry["type"], entry["edit_log"]) for entry in page["data"]]
    assert entries == {
        "a": [("customer_updated", "firstName: Ayu → Ayu Putri"), ("customer_created", None)],
        "b": [("customer_created", None)],
        "c": [("customer_created", None)],
    }
