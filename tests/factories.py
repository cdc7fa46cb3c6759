"""What tests start from, made through the product's own actions."""

from itertools import count
from typing import Any
from uuid import uuid4

import httpx
from msgspec import Struct

from sapa.access import actions
from sapa.access.types import KeyIn, Product, Scope
from sapa.db.pool import Database

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
        products=list(Product) if products is None else products,
        allow_list=allow_list or [],
        rate_limit=rate_limit,
        expires_at=expires_at,
    )
    async with database.transaction() as tx:
        made = await actions.create_key(tx, company_id, given)
    return MadeKey(made.info.id, made.key)


async def make_customer(api: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    """A customer over HTTP; an e-mail address of its own unless one is given."""
    number = next(_numbers)
    body = {"email": f"customer-{number}-{uuid4().hex[:8]}@example.com", **fields}
    answer = await api.post("/customers", json=body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()["data"]
    return made
