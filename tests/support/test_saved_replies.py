"""Saved replies with their placeholders, and views."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.support.saved_replies.placeholders import NAMES, fill, list_unknown
from tests.http.samples import root_of
from tests.support.test_filing import put
from tests.support.ticket_steps import Desk

Json = dict[str, Any]


@pytest.mark.smoke
async def test_saved_replies_are_changed_and_deleted(desk: Desk) -> None:
    saved = await desk.post("/saved-replies", 201, shortcut="ongkir", text="Ongkir {nama} gratis.")
    assert await desk.get("/saved-replies") == [saved]
    assert (await desk.post("/saved-replies", 409, shortcut="ongkir", text="x"))["code"] == "SAVED_REPLY_EXISTS"
    changed = await put(desk, f"/saved-replies/{saved['id']}", shortcut="ongkir", text="Gratis.")
    assert changed == await desk.get(f"/saved-replies/{saved['id']}")
    assert (await desk.client.delete(f"/saved-replies/{saved['id']}")).status_code == 204
    assert await desk.get("/saved-replies") == []
    for wrong in ({"shortcut": "Dua kata", "text": "x"}, {"shortcut": "x", "text": " "}):
        assert (await desk.client.post("/saved-replies", json=wrong)).status_code == 400
    refused = await desk.post("/saved-replies", 400, shortcut="x", text="Halo {siapa}")
    assert "{siapa}" in refused["message"]


async def test_placeholders_are_filled_in_for_a_ticket(desk: Desk) -> None:
    sari = await desk.create_agent()
    ticket = await desk.receive()
    saved = await desk.post("/saved-replies", 201, shortcut="kirim", text="Halo {nama}, {pesanan} {resi}. {agen}")
    path = f"/tickets/{ticket['id']}/saved-replies/{saved['id']}"
    before = await desk.get(path)
    assert set(before["missing"]) >= {"pesanan", "resi", "agen"}
    root = f"{root_of(desk.client)}/customer/v1"
    await desk.client.put(f"{root}/customers/{ticket['customerId']}", json={"firstName": "Ayu", "lastName": "L"})
    line = {"title": "Kopi", "price": 75000, "quantity": 2}
    placed = await desk.client.post(f"{root}/orders", json={"customerId": ticket["customerId"], "lineItems": [line]})
    order = placed.json()["data"]
    filled = await desk.get(path, agentId=sari)
    assert filled == {"text": f"Halo Ayu, {order['orderNumber']} {{resi}}. Sari", "missing": ["resi"]}


async def test_views_are_shared_or_personal(desk: Desk) -> None:
    sari, budi = await desk.create_agent(), await desk.create_agent("Budi")
    filters = {"status": "open", "priority": "urgent", "snoozed": False, "sort": "waitingSince:asc"}
    shared = await desk.post("/views", 201, name="Mendesak", filters=filters)
    assert (shared["filters"], shared["agentId"]) == (filters, None)
    own = await desk.post("/views", 201, name="Mendesak", agentId=sari, filters={"mine": True})
    assert (await desk.post("/views", 409, name="mendesak", filters={}))["code"] == "VIEW_EXISTS"
    assert await desk.get("/views", agentId=sari) == [own, shared]
    assert await desk.get("/views", agentId=budi) == [shared]
    assert (await put(desk, f"/views/{own['id']}", name="Milik Sari", filters={}))["agentId"] is None
    assert (await desk.client.delete(f"/views/{own['id']}")).status_code == 204
    for wrong in ({"status": "closed"}, {"x": 1}, {"channel": "fax"}):
        assert (await desk.client.post("/views", json={"name": "x", "filters": wrong})).status_code == 400


async def test_a_view_filters_by_labels_and_teams_that_exist(desk: Desk) -> None:
    label = await desk.post("/labels", 201, name="Retur", color="#aa0000")
    team = await desk.post("/teams", 201, name="Gudang", agentIds=[])
    view = await desk.post("/views", 201, name="a", filters={"labelId": label["id"], "teamId": team["id"]})
    for field, unknown in (("labelId", ""), ("labelId", team["id"]), ("teamId", "nonsense"), ("teamId", label["id"])):
        for method, path in (("POST", "/views"), ("PUT", f"/views/{view['id']}")):
            body = {"name": "b", "filters": {field: unknown}}
            refused = await desk.client.request(method, path, json=body)
            assert (refused.status_code, refused.json()["error"]["details"][0]["field"]) == (400, f"filters.{field}")


@given(
    st.lists(st.sampled_from([*NAMES, "lain"])),
    st.dictionaries(st.sampled_from(sorted(set(NAMES.values()))), st.text()),
)
def test_every_known_placeholder_with_a_value_is_filled_in(names: list[str], values: dict[str, str]) -> None:
    text = "-".join(f"{{{name}}}" for name in names)
    filled, missing = fill(text, values)
    assert filled == "-".join(values.get(NAMES.get(name, ""), f"{{{name}}}") for name in names)
    assert set(missing) == {name for name in names if NAMES.get(name) not in values}
    assert set(list_unknown(text)) == ({"lain"} & set(names))
