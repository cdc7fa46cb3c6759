"""What tests start from, made through the product's own actions."""

from itertools import count
from typing import Any
from uuid import uuid4

import httpx
from msgspec import Struct

from sapa.access import actions
from sapa.access.types import KeyIn, KeyProduct, Scope
from sapa.db.pool import Database
from sapa.settings import WebhookSettings
from sapa.values.sealing import Vault
from sapa.webhooks.endpoints import actions as webhooks
from sapa.webhooks.types import NewSecret, WebhookEndpointIn

_numbers = count(1)


class Environments(Struct, frozen=True):
    """A company's two ids."""

    name: str
    live: int
    test: int


class MadeKey(Struct, frozen=True):
    id: str
    raw: str


async def make_company(database: Database, region: str = "ID", currency: str = "IDR") -> Environments:
    async with database.transaction() as tx:
        made = await actions.create_company(tx, f"Company {uuid4()}", region, currency)
    return Environments(made.name, made.live_company_id, made.test_company_id)


async def make_key(
    database: Database,
    company_id: int,
    scopes: list[str] | None = None,
    products: list[str] | None = None,
    allow_list: list[str] | None = None,
    rate_limit: int = 1_000_000,
    expires_at: str | None = None,
) -> MadeKey:
    """All scopes and products unless told otherwise, and no rate limit that a test would notice."""
    given = KeyIn(
        name="test key",
        scopes=list(Scope) if scopes is None else scopes,
        products=list(KeyProduct) if products is None else products,
        allow_list=allow_list or [],
        rate_limit=rate_limit,
        expires_at=expires_at,
    )
    async with database.transaction() as tx:
        made = await actions.create_key(tx, company_id, given)
    return MadeKey(made.info.id, made.key)


async def end_key(database: Database, id: str) -> None:
    """As if its time had been over long ago; a key cannot be created like that."""
    async with database.transaction() as tx:
        await tx.execute("UPDATE api_keys SET expires_at = '2020-01-01T00:00:00Z' WHERE id = $1", id)


async def make_customer(api: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    """A customer over HTTP; an e-mail address of its own unless one is given."""
    number = next(_numbers)
    body = {"email": f"customer-{number}-{uuid4().hex[:8]}@example.com", **fields}
    answer = await api.post("/customers", json=body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()["data"]
    return made


async def make_product(api: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    """A product over HTTP; one variant whose stock is not tracked, unless others are given."""
    number = next(_numbers)
    body = {"name": f"Product {number}", "variants": [{"title": "M", "price": 150000}], **fields}
    answer = await api.post("/products", json=body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()["data"]
    return made


async def make_order(api: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    """An order over HTTP; one line of its own and no customer, unless others are given."""
    body = {"lineItems": [{"title": "Kopi Gayo", "price": 75000, "quantity": 2}], **fields}
    answer = await api.post("/orders", json=body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()["data"]
    return made


async def add_points(api: httpx.AsyncClient, customer_id: str, points: int, **fields: Any) -> dict[str, Any]:
    """Points added by hand; the answer's wallet and entry."""
    body = {"direction": "add", "points": points, **fields}
    answer = await api.post(f"/loyalty/customers/{customer_id}/points/adjust", json=body)
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()["data"]
    return made


async def make_reservation(api: httpx.AsyncClient, customer_id: str, points: int = 10, **fields: Any) -> dict[str, Any]:
    answer = await api.post(f"/loyalty/customers/{customer_id}/reservations", json={"points": points, **fields})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()["data"]
    return made


async def make_reward(api: httpx.AsyncClient, cost: int = 50, **fields: Any) -> dict[str, Any]:
    """A reward over HTTP; free shipping unless another discount is given."""
    body = {"rewardName": "Kopi gratis", "costToRedeem": cost, "discountType": "free_shipping", **fields}
    answer = await api.post("/loyalty/reward-options", json=body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()["data"]
    return made


async def make_redemption(
    api: httpx.AsyncClient, customer_id: str, reward: dict[str, Any], **fields: Any
) -> dict[str, Any]:
    """A reward redeemed by a customer who has the points; the redemption alone."""
    body = {
        "rewardOptionId": reward["id"],
        "rewardName": reward["rewardName"],
        "pointsCost": int(reward["costToRedeem"]),
        **fields,
    }
    answer = await api.post(f"/loyalty/customers/{customer_id}/redeem", json=body)
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()["data"]["redemption"]
    return made


async def make_import(api: httpx.AsyncClient, content: bytes = b"email\n", **params: str) -> dict[str, Any]:
    """A file of customers, uploaded; one without records unless some are given."""
    params = {"resource": "customers", **params}
    answer = await api.post("/imports", params=params, content=content, headers={"content-type": "text/csv"})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()["data"]
    return made


async def make_endpoint(
    database: Database,
    vault: Vault,
    company_id: int,
    url: str = "https://hooks.example.com/sapa",
    events: list[str] | None = None,
    headers: dict[str, str] | None = None,
) -> NewSecret:
    """A webhook endpoint for all kinds unless some are given; any address will do, ours and plain HTTP included."""
    settings = WebhookSettings(allow_insecure=True, allowed_networks=())
    given = WebhookEndpointIn(url=url, events=events or [], headers=headers or {})
    async with database.transaction() as tx:
        return await webhooks.create(tx, vault, settings, company_id, given)
