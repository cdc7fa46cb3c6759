"""Every reachable state of an order and every change of one status: what is allowed, and the result."""

import json
from typing import Any

import httpx
import pytest

from tests.customers.test_api import refusal
from tests.factories import make_order, make_product

STATUSES = ["active", "archived", "cancelled", "refunded"]
PAYMENTS = ["pending", "paid", "refunded"]
Order = dict[str, Any]

# How to come to each state, and the statuses that it leads to.
PAYING = {"pending": [], "paid": [{"financialStatus": "paid"}],
          "refunded": [{"financialStatus": "paid"}, {"financialStatus": "refunded"}]}  # fmt: skip
FULFIL, CANCEL, REFUND, ARCHIVE = (
    {"fulfillmentStatus": "fulfilled"}, {"status": "cancelled"}, {"status": "refunded"}, {"status": "archived"},
)  # fmt: skip
STATES: list[tuple[str, list[Order], set[str]]] = []
for paid, pay in PAYING.items():
    refund = set() if paid == "pending" else {"refunded"}
    STATES += [
        (f"active unfulfilled {paid}", [*pay], {"archived", "cancelled", "refunded"}),
        (f"active fulfilled {paid}", [*pay, FULFIL], {"archived", "refunded"}),
        (f"cancelled unfulfilled {paid}", [*pay, CANCEL], {"archived", *refund}),
        (f"archived unfulfilled {paid}", [*pay, ARCHIVE], {"active", "refunded"}),
        (f"archived fulfilled {paid}", [*pay, FULFIL, ARCHIVE], {"active", "refunded"}),
        (f"archived unfulfilled {paid}", [*pay, CANCEL, ARCHIVE], {"cancelled"}),
    ]
for done, steps in (("unfulfilled", []), ("fulfilled", [FULFIL])):
    STATES += [
        (f"refunded {done} refunded", [*steps, REFUND], {"archived"}),
        (f"archived {done} refunded", [*steps, REFUND, ARCHIVE], {"refunded"}),
    ]
NEXT_PAYMENT = {"pending": {"paid"}, "paid": {"pending", "refunded"}, "refunded": set()}


async def walk(api: httpx.AsyncClient, steps: list[Order]) -> Order:
    order = await make_order(api)
    for step in steps:
        response = await api.put(f"/orders/{order['id']}", json=step)
        assert response.status_code == 200, response.text
        order = response.json()["data"]
    return order


def state_of(order: Order) -> tuple[str, str, str]:
    return order["status"], order["fulfillmentStatus"], order["financialStatus"]


async def expect(api: httpx.AsyncClient, order: Order, patch: Order, allowed: bool) -> Order:
    """Makes a change; a refused one changes nothing."""
    response = await api.put(f"/orders/{order['id']}", json=patch)
    if not allowed:
        refusal(response, 409, "INVALID_TRANSITION")
        assert (await api.get(f"/orders/{order['id']}")).json()["data"] == order
        return order
    assert response.status_code == 200, (state_of(order), patch, response.text)
    changed: Order = response.json()["data"]
    assert {name: changed[name] for name in patch} == patch
    return changed


@pytest.mark.parametrize(("state", "steps", "following"), STATES, ids=lambda value: json.dumps(value, default=sorted))
async def test_every_change_of_one_status(
    api: httpx.AsyncClient, state: str, steps: list[Order], following: set[str]
) -> None:
    assert " ".join(state_of(await walk(api, steps))) == state
    status, fulfilled, paid = state.split()
    for target in STATUSES:
        order = await walk(api, steps)
        changed = await expect(api, order, {"status": target}, target in following | {status})
        if target == status:
            assert changed == order
        elif target in following:
            assert state_of(changed) == (target, fulfilled, "refunded" if target == "refunded" else paid)
    for target in ("unfulfilled", "fulfilled"):
        order = await walk(api, steps)
        await expect(api, order, {"fulfillmentStatus": target}, target == fulfilled or status == "active")
    for target in PAYMENTS:
        order = await walk(api, steps)
        await expect(api, order, {"financialStatus": target}, target in NEXT_PAYMENT[paid] | {paid})


@pytest.mark.parametrize(
    ("steps", "patch", "allowed"),
    [
        ([], {"status": "archived", "fulfillmentStatus": "fulfilled", "financialStatus": "paid"}, True),
        ([], {"status": "refunded", "financialStatus": "paid"}, False),
        ([], {"status": "refunded", "financialStatus": "pending"}, False),
        ([], {"status": "refunded", "financialStatus": "refunded"}, True),
        (PAYING["paid"], {"status": "refunded", "financialStatus": "refunded"}, True),
        ([], {"status": "refunded", "fulfillmentStatus": "fulfilled"}, True),
        ([], {"status": "cancelled", "fulfillmentStatus": "fulfilled"}, False),
        ([FULFIL], {"status": "cancelled", "fulfillmentStatus": "unfulfilled"}, True),
        ([], {"status": "cancelled", "financialStatus": "paid"}, True),
        ([CANCEL], {"status": "refunded", "financialStatus": "paid"}, False),
        ([CANCEL], {"status": "archived", "financialStatus": "paid"}, True),
        ([CANCEL], {"status": "archived", "fulfillmentStatus": "fulfilled"}, False),
        ([ARCHIVE], {"status": "active", "fulfillmentStatus": "fulfilled", "financialStatus": "paid"}, True),
        ([ARCHIVE], {"status": "archived", "fulfillmentStatus": "fulfilled"}, False),
        ([ARCHIVE], {"status": "refunded", "fulfillmentStatus": "fulfilled"}, False),
        ([ARCHIVE], {"status": "refunded", "financialStatus": "refunded"}, True),
        ([ARCHIVE], {"status": "cancelled", "financialStatus": "paid"}, False),
        ([REFUND], {"status": "refunded", "financialStatus": "refunded", "fulfillmentStatus": "unfulfilled"}, True),
        ([], {"status": "active", "fulfillmentStatus": "unfulfilled", "financialStatus": "pending"}, True),
        ([], {"financialStatus": "refunded", "fulfillmentStatus": "fulfilled"}, False),
    ],
)
async def test_several_statuses_at_once_hold_in_the_end_or_are_refused(
    api: httpx.AsyncClient, steps: list[Order], patch: Order, allowed: bool
) -> None:
    await expect(api, await walk(api, steps), patch, allowed)


@pytest.mark.parametrize(
    ("steps", "patch", "parts"),
    [
        ([CANCEL], {"status": "active"}, ["cancelled", "active", "archived"]),
        ([FULFIL], {"status": "cancelled"}, ["fulfilled", "archived or refunded"]),
        ([CANCEL], {"status": "refunded"}, ["not paid", "archived"]),
        ([ARCHIVE], {"status": "cancelled"}, ["active or refunded"]),
        ([REFUND], {"financialStatus": "paid"}, ["refunded", "nothing else"]),
        ([], {"financialStatus": "refunded"}, ["pending", "to paid"]),
        ([CANCEL], {"fulfillmentStatus": "fulfilled"}, ["fulfillmentStatus", "active"]),
        ([], {"status": "refunded", "financialStatus": "paid"}, ["contradict", "refunded"]),
    ],
)
async def test_a_refusal_says_what_is_allowed(
    api: httpx.AsyncClient, steps: list[Order], patch: Order, parts: list[str]
) -> None:
    order = await walk(api, steps)
    error = refusal(await api.put(f"/orders/{order['id']}", json=patch), 409, "INVALID_TRANSITION")
    assert all(part in error["message"] for part in parts), error["message"]


@pytest.mark.parametrize(
    ("steps", "stock"),
    [
        ([CANCEL], 10),
        ([REFUND], 10),
        ([FULFIL, REFUND], 10),
        ([ARCHIVE], 7),
        ([ARCHIVE, REFUND], 10),
        ([ARCHIVE, {"status": "active"}], 7),
        ([CANCEL, ARCHIVE, CANCEL, ARCHIVE, CANCEL], 10),
        ([*PAYING["paid"], CANCEL, REFUND, ARCHIVE, REFUND], 10),
        ([*PAYING["refunded"]], 7),
        ([*PAYING["refunded"], FULFIL], 7),
        ([CANCEL, CANCEL], 10),
    ],
)
async def test_stock_goes_down_with_the_order_and_comes_back_once(
    api: httpx.AsyncClient, steps: list[Order], stock: int
) -> None:
    variants = [{"title": "M", "price": 1, "inventoryQuantity": 10}, {"title": "L", "price": 1}]
    product = await make_product(api, variants=variants)
    tracked, untracked = (variant["id"] for variant in product["variants"])
    lines = [(tracked, 1), (untracked, 5), (tracked, 2)]
    order = await make_order(api, lineItems=[{"productVariantId": id, "quantity": number} for id, number in lines])
    for step in steps:
        assert (await api.put(f"/orders/{order['id']}", json=step)).status_code == 200
    left = (await api.get(f"/products/{product['id']}")).json()["data"]["variants"]
    assert [variant["inventoryQuantity"] for variant in left] == [stock, None]
