"""Settlements and differences over HTTP."""

import asyncio
from typing import Any

import httpx

from tests.shipping.parcels import change, create, error_of, get

PAID_AT = "2026-01-31T09:30:00.000Z"


async def deliver(api: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    """A parcel that our own rider delivered, for 100,000 in cash and a fee of 1,000."""
    created = await create(api, "custom", codAmount=100_000, codFee=1_000, **fields)
    for status in ("confirmed", "delivered"):
        response = await change(api, created["id"], shippingStatus=status)
        assert response.status_code == 200, response.text
    return await get(api, created["id"])


def build(reference: str, *lines: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"provider": "custom", "reference": reference, "remittedAt": PAID_AT, "lines": list(lines), **fields}


async def settle(api: httpx.AsyncClient, body: dict[str, Any]) -> httpx.Response:
    return await api.post("/shipping/settlements", json=body)


async def differences(api: httpx.AsyncClient, **params: str) -> list[dict[str, Any]]:
    response = await api.get("/shipping/cod-differences", params=params)
    assert response.status_code == 200, response.text
    assert response.json()["meta"]["total"] == len(response.json()["data"])
    found: list[dict[str, Any]] = response.json()["data"]
    return found


async def test_the_same_statement_twice(sandbox: httpx.AsyncClient) -> None:
    parcel = await deliver(sandbox)
    body = build("S-1", {"parcel": parcel["id"], "amount": 98_000})
    first = await settle(sandbox, body)
    assert first.status_code == 201, first.text
    for same in (body, body | {"remittedAt": "2026-01-31T16:30:00+07:00", "currency": "IDR"}):
        again = await settle(sandbox, same)
        assert (again.status_code, again.json()) == (200, first.json())
    assert len(await differences(sandbox)) == 1
    changed = await settle(sandbox, build("S-1", {"parcel": parcel["id"], "amount": 99_000}))
    assert error_of(changed) == (409, "SETTLEMENT_EXISTS")
    page = (await sandbox.get("/shipping/settlements")).json()
    assert (page["data"], page["meta"]["total"]) == ([first.json()["data"]], 1)
    stored = await sandbox.get(f"/shipping/settlements/{first.json()['data']['id']}")
    assert stored.json() == first.json()


async def test_the_same_statement_at_once_is_stored_once(sandbox: httpx.AsyncClient) -> None:
    lines = [{"parcel": (await deliver(sandbox))["id"], "amount": 99_000} for _ in range(3)]
    responses = await asyncio.gather(*(settle(sandbox, build("S-1", *lines)) for _ in range(8)))
    assert sorted(response.status_code for response in responses) == [200] * 7 + [201]
    assert len({response.json()["data"]["id"] for response in responses}) == 1
    assert await differences(sandbox) == []


async def test_a_parcel_is_paid_out_once(sandbox: httpx.AsyncClient) -> None:
    """By two statements at the same time, and twice in one."""
    parcel = await deliver(sandbox)
    bodies = [build(f"S-{n}", {"parcel": parcel["id"], "amount": 99_000}) for n in range(8)]
    responses = await asyncio.gather(*(settle(sandbox, body) for body in bodies))
    assert [response.status_code for response in responses] == [201] * 8
    assert sorted(response.json()["data"]["differing"] for response in responses) == [0] + [1] * 7
    found = await differences(sandbox)
    assert {one["kind"] for one in found} == {"remitted_before"}
    assert len(found) == 7
    assert (await get(sandbox, parcel["id"]))["codRemittedAmount"] == 99_000
    other = await deliver(sandbox)
    line = {"parcel": other["id"], "amount": 99_000}
    twice = (await settle(sandbox, build("S-twice", line, line))).json()["data"]
    assert (twice["expectedAmount"], twice["remittedAmount"], twice["differing"]) == (99_000, 198_000, 1)


async def test_lines_that_belong_to_nothing(sandbox: httpx.AsyncClient, api: httpx.AsyncClient) -> None:
    prepaid = await create(sandbox, "custom")
    foreign = await deliver(api)
    body = build(
        "S-1",
        {"parcel": "nobody's", "amount": 1},
        {"parcel": prepaid["id"], "amount": 2},
        {"parcel": foreign["id"], "amount": 3},
    )
    settled = (await settle(sandbox, body)).json()["data"]
    assert (settled["expectedAmount"], settled["difference"]) == (0, 6)
    kinds = {one["line"]: (one["kind"], one["shipmentId"]) for one in await differences(sandbox)}
    assert kinds == {
        1: ("unknown_parcel", None),
        2: ("not_cash_on_delivery", prepaid["id"]),
        3: ("unknown_parcel", None),
    }
    assert (await get(api, foreign["id"]))["codRemittedAt"] is None


async def test_a_difference_is_resolved(sandbox: httpx.AsyncClient) -> None:
    parcel = await deliver(sandbox)
    settled = (await settle(sandbox, build("S-1", {"parcel": parcel["id"], "amount": 98_999}))).json()["data"]
    (found,) = await differences(sandbox, state="open", kind="remitted_amount", settlementId=settled["id"])
    assert (found["difference"], found["resolvedAt"]) == (-1, None)
    path = f"/shipping/cod-differences/{found['id']}"
    response = await sandbox.post(f"{path}/resolve", json={"note": "It comes with the next one."})
    assert response.status_code == 200, response.text
    resolved = response.json()["data"]
    assert resolved["resolvedAt"] is not None
    assert {**resolved, "resolvedAt": None, "note": None} == found
    again = await sandbox.post(f"{path}/resolve", json={"note": "Something else."})
    assert again.json()["data"] == resolved
    assert await differences(sandbox, state="open") == []
    assert await differences(sandbox, state="resolved") == [resolved]
    assert (await sandbox.get(path)).json()["data"] == resolved


async def test_a_file(sandbox: httpx.AsyncClient) -> None:
    parcel = await deliver(sandbox)
    text = f"Resi;Nilai COD;Biaya COD;Dana Cair\n{parcel['id']};100.000;1.000;Rp 98.999\n"
    query = {"provider": "custom", "reference": "F-1", "remittedAt": PAID_AT}
    headers = {"content-type": "text/csv"}

    async def upload(content: str) -> httpx.Response:
        return await sandbox.post("/shipping/settlements/file", params=query, content=content.encode(), headers=headers)

    response = await upload(text)
    assert response.status_code == 201, response.text
    assert response.json()["data"]["difference"] == -1
    assert (await upload(text)).status_code == 200
    assert error_of(await upload("weight\n1\n")) == (400, "VALIDATION_ERROR")


async def test_bodies_that_cannot_be_used(sandbox: httpx.AsyncClient) -> None:
    line = {"parcel": "A", "amount": 1}
    for body, field in (
        (build("S", line) | {"provider": "ev_courier"}, "provider"),
        (build("S", line) | {"remittedAt": "2999-01-01T00:00:00Z"}, "remittedAt"),
        (build("S", line) | {"remittedAt": "0001-01-01T00:00:00+14:00"}, "remittedAt"),
        (build("S", line) | {"currency": "XXX"}, "currency"),
        (build(" ", line), "reference"),
        (build("S"), "lines"),
        (build("S", {"parcel": " ", "amount": 1}), "lines[0].parcel"),
        (build("S", line, {"parcel": "B", "amount": 0.001}), "lines[1].amount"),
        (build("S", {**line, "codFee": -1}), "lines[0].codFee"),
        (build("S", {**line, "fee": 1}), "lines[0].fee"),
    ):
        response = await settle(sandbox, body)
        assert response.status_code == 400, (body, response.text)
        assert response.json()["error"]["details"][0]["field"] == field
    live = await sandbox.get("/shipping/settlements/stl_01jc9y3q5me8w92v7x4t6r0n1k")
    assert error_of(live) == (404, "NOT_FOUND")


async def test_no_statement_of_simulators_for_live_keys(api: httpx.AsyncClient) -> None:
    response = await api.get("/shipping/sandbox/cod-statement", params={"provider": "aggregator_carrier"})
    assert error_of(response) == (403, "TEST_KEY_REQUIRED")
