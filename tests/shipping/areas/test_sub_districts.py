"""Sub-districts must lie in their districts: checked on creation and on editing, as far as the lists are cached."""

import httpx

from sapa.db.pool import Database
from tests.conftest import Installation
from tests.factories import Environments
from tests.shipping.parcels import DELIVERY, SENDER, body_of, change, create, field_of
from tests.shipping.quotes.quote_steps import ask, connect_live

ELSEWHERE = {**DELIVERY, "kelurahanId": 3171061001}


def refused(response: httpx.Response, field: str, district: int, sub_district: int) -> None:
    assert field_of(response) == field
    message = response.json()["error"]["message"]
    assert str(district) in message
    assert str(sub_district) in message


async def test_a_sub_district_of_another_district_is_refused(sandbox: httpx.AsyncClient) -> None:
    path = "/shipping/shipments"
    response = await sandbox.post(path, json=body_of("aggregator_carrier", delivery=ELSEWHERE))
    refused(response, "delivery.kelurahanId", 317407, 3171061001)
    nowhere = {**SENDER, "kelurahanId": 31532}
    response = await sandbox.post(path, json=body_of("aggregator_carrier", sender=nowhere, autoBook=True))
    refused(response, "sender.kelurahanId", 317106, 31532)
    assert (await sandbox.get(path)).json()["meta"]["total"] == 0
    quote = await ask(sandbox, origin={"districtId": 317407, "subDistrictId": 3171061001})
    refused(quote, "origin.subDistrictId", 317407, 3171061001)

    created = await create(sandbox, "aggregator_carrier")
    response = await change(sandbox, created["id"], delivery={"kecamatanId": 317106})
    refused(response, "delivery.kelurahanId", 317106, 3174071002)
    assert (await change(sandbox, created["id"], delivery={"kelurahanId": 3174071001})).status_code == 200


async def test_an_uncached_district_is_not_checked(sandbox: httpx.AsyncClient) -> None:
    unknown = {**DELIVERY, "kecamatanId": 5783, "kelurahanId": 31532}
    assert await create(sandbox, "aggregator_carrier", delivery=unknown)
    assert await create(sandbox, "ev_courier", delivery=ELSEWHERE), "who goes by coordinates does not care"


async def test_a_live_carriers_list_counts_once_it_was_seen(
    installation: Installation, database: Database, company: Environments, api: httpx.AsyncClient
) -> None:
    assert await create(api, "aggregator_carrier", delivery=ELSEWHERE), "nobody is connected who could know"
    await connect_live(installation, database, company.live, "aggregator_carrier", api_key="planted-secret-key")
    assert await create(api, "aggregator_carrier", delivery=ELSEWHERE), "its list was never asked for"
    async with database.connection() as db:
        await db.execute(
            """INSERT INTO coverage_cache (company_id, adapter, level, parent, areas)
               VALUES ($1, 'kiriminaja', 'sub-districts', '317407', $2)""",
            company.live, b'[{"id":3174071002,"name":"Melawai","parent_id":317407}]',
        )  # fmt: skip
    response = await api.post("/shipping/shipments", json=body_of("aggregator_carrier", delivery=ELSEWHERE))
    refused(response, "delivery.kelurahanId", 317407, 3171061001)
    assert await create(api, "aggregator_carrier")
