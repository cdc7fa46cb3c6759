"""How companies and keys change."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from sapa.access import actions, queries
from sapa.access.types import (
    DATA_SCOPES,
    ApiKey,
    CompanyExists,
    CompanyNotFound,
    KeyIn,
    KeyNotActive,
    KeyNotFound,
    KeyProduct,
    LiveClock,
    NewKey,
    Scope,
)
from sapa.db.pool import Database
from sapa.http.errors import Invalid, translate
from tests.factories import Environments, end_key, make_key


async def create_key(database: Database, company_id: int, **fields: Any) -> NewKey:
    async with database.transaction() as tx:
        return await actions.create_key(tx, company_id, KeyIn(**{"name": "key", "scopes": [], **fields}))


async def rotate(database: Database, id: str) -> NewKey:
    async with database.transaction() as tx:
        return await actions.rotate_key(tx, id)


async def revoke(database: Database, id: str) -> ApiKey:
    async with database.transaction() as tx:
        key, _ = await actions.revoke_key(tx, id)
        return key


async def get_key(database: Database, id: str) -> ApiKey:
    async with database.connection() as db:
        return await queries.get_key(db, id)


async def move_clock(database: Database, company_id: int, by: timedelta | None) -> float:
    async with database.transaction() as tx:
        return (await actions.move_clock(tx, company_id, by)).clock_offset_seconds


async def test_a_company_has_two_environments_with_ids_of_their_own(database: Database) -> None:
    name = f"  Toko {uuid4()} "
    async with database.transaction() as tx:
        made = await actions.create_company(tx, name, "us", "usd")
        live = await queries.get_company(tx, made.live_company_id)
        test = await queries.get_company(tx, made.test_company_id)
    assert made.name == live.name == test.name == name.strip()
    assert (live.environment, test.environment) == ("live", "test")
    assert live.company_id != test.company_id
    assert {(row.region, row.currency) for row in (live, test)} == {("US", "USD")}


async def test_a_name_is_taken_once(database: Database, company: Environments) -> None:
    with pytest.raises(asyncpg.UniqueViolationError) as refused:
        async with database.transaction() as tx:
            await actions.create_company(tx, company.name)
    assert isinstance(translate(refused.value), CompanyExists)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "   "}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "a\0b"}, "name"),
        ({"name": "x", "region": "XX"}, "region"),
        ({"name": "x", "region": ""}, "region"),
        ({"name": "x", "currency": "RUPIAH"}, "currency"),
        ({"name": "x", "currency": "1DR"}, "currency"),
        ({"name": "x", "currency": "ÉUR"[:3]}, "currency"),
    ],
)
async def test_an_invalid_company_is_refused_with_its_field(
    database: Database, fields: dict[str, str], field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        async with database.transaction() as tx:
            await actions.create_company(tx, **fields)
    assert [detail.field for detail in refused.value.details or []] == [field]


@pytest.mark.smoke
async def test_a_key_has_the_requested_fields(database: Database, company: Environments) -> None:
    made = await create_key(
        database,
        company.live,
        name=" Shop ",
        scopes=["orders:WRITE", "customers:READ", "customers:READ"],
        products=["CRM"],
        allow_list=["203.0.113.7", "2001:DB8::/64", "203.0.113.7"],
        rate_limit=7,
        allows_mcp=False,
        expires_at="2999-01-31T09:30:00+07:00",
    )
    info = made.info
    assert (info.name, info.status, info.company_id, info.environment) == ("Shop", "active", company.live, "live")
    assert info.scopes == ["customers:READ", "orders:WRITE"]
    assert info.products == ["CRM"]
    assert info.allow_list == ["203.0.113.7/32", "2001:db8::/64"]
    assert info.rate_limit == 7
    assert info.allows_mcp is False
    assert info.expires_at == "2999-01-31T02:30:00.000Z"
    assert (info.prefix, info.last_four) == ("svc_live_", made.key[-4:])
    assert (info.replaced_by, info.last_used_at, info.last_used_ip) == (None, None, None)
    assert await get_key(database, info.id) == info


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"name": ""}, "name", "1 to 100"),
        ({"name": "x" * 101}, "name", "1 to 100"),
        ({"scopes": ["orders:EAT"]}, "scopes", "'orders:EAT' is unknown; use one of customers:READ"),
        ({"scopes": ["ORDERS:READ"]}, "scopes", "is unknown"),
        ({"products": ["ERP"]}, "products", "'ERP' is unknown; use one of CRM"),
        ({"allow_list": ["10.0.0.0/7"]}, "allowList", "too broad"),
        ({"allow_list": [f"203.0.113.{n}" for n in range(21)]}, "allowList", "at most 20"),
        ({"rate_limit": 0}, "rateLimit", "from 1 to 1000000"),
        ({"rate_limit": -1}, "rateLimit", "from 1 to 1000000"),
        ({"rate_limit": 1_000_001}, "rateLimit", "from 1 to 1000000"),
        ({"expires_at": "tomorrow"}, "expiresAt", "ISO 8601"),
        ({"expires_at": "2027-01-31"}, "expiresAt", "ISO 8601"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "expiresAt", "must be in the future"),
    ],
)
async def test_an_invalid_key_is_refused_with_its_field(
    database: Database, company: Environments, fields: dict[str, Any], field: str, message: str
) -> None:
    with pytest.raises(Invalid, match=message) as refused:
        await create_key(database, company.live, **fields)
    assert [detail.field for detail in refused.value.details or []] == [field]


async def test_scopes_are_those_of_the_contract_the_one_that_shipping_needs_and_those_of_management() -> None:
    contract = {
        "customers": ["READ", "WRITE", "DELETE"], "orders": ["READ", "WRITE"], "products": ["READ", "WRITE", "DELETE"],
        "messages": ["READ", "WRITE"], "analytics": ["READ"],
    }  # fmt: skip
    pairs = {f"{resource}:{action}" for resource, actions in contract.items() for action in actions}
    management = {
        f"{resource}:{action}"
        for resource in ("webhooks", "keys", "connections")
        for action in ("READ", "WRITE", "DELETE")
    }
    assert {str(scope) for scope in Scope} == pairs | {"orders:DELETE"} | management
    assert {str(scope) for scope in DATA_SCOPES} == pairs | {"orders:DELETE"}
    assert [str(product) for product in KeyProduct] == ["CRM"]


async def test_an_unknown_company_or_key_is_not_found(database: Database) -> None:
    with pytest.raises(CompanyNotFound):
        await create_key(database, 2**40)
    for change in (rotate, revoke):
        with pytest.raises(KeyNotFound):
            await change(database, "key_01jc9y3q5me8w92v7x4t6r0n1k")
    with pytest.raises(CompanyNotFound):
        await move_clock(database, 2**40, timedelta(hours=1))


async def test_a_key_is_rotated_once(database: Database, company: Environments) -> None:
    old = await create_key(database, company.live)
    new = await rotate(database, old.info.id)
    with pytest.raises(KeyNotActive):
        await rotate(database, old.info.id)
    assert (await get_key(database, old.info.id)).replaced_by == new.info.id
    async with database.connection() as db:
        assert len(await queries.list_keys(db, company.live)) == 2, "a refused rotation leaves no key behind"
    assert (await rotate(database, new.info.id)).info.replaced_by is None


async def test_of_several_rotations_at_once_one_succeeds(database: Database, company: Environments) -> None:
    old = await create_key(database, company.live)
    results = await asyncio.gather(*(rotate(database, old.info.id) for _ in range(5)), return_exceptions=True)
    assert [type(result) for result in results].count(NewKey) == 1
    async with database.connection() as db:
        assert len(await queries.list_keys(db, company.live)) == 2


async def test_a_key_that_does_not_work_cannot_be_rotated(database: Database, company: Environments) -> None:
    revoked = await create_key(database, company.live)
    await revoke(database, revoked.info.id)
    expired = await create_key(database, company.live)
    await end_key(database, expired.info.id)
    for key in (revoked, expired):
        with pytest.raises(KeyNotActive):
            await rotate(database, key.info.id)


async def test_a_key_expires_in_the_future_of_the_company_s_clock(database: Database, company: Environments) -> None:
    async with database.connection() as db:
        tomorrow = await db.fetchval("SELECT to_char(now() + '1 d', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')")
    await create_key(database, company.test, expires_at=tomorrow)
    await move_clock(database, company.test, timedelta(days=2))
    with pytest.raises(Invalid, match="must be in the future"):
        await create_key(database, company.test, expires_at=tomorrow)


async def test_a_rotated_key_ends_a_day_later_in_company_time(database: Database, company: Environments) -> None:
    key = await create_key(database, company.test)
    await move_clock(database, company.test, timedelta(days=10))
    await rotate(database, key.info.id)
    async with database.connection() as db:
        left = await db.fetchval(
            "SELECT extract(epoch FROM expires_at - now())::float8 FROM api_keys WHERE id = $1", key.info.id
        )
    assert left == pytest.approx(11 * 86400, abs=60)


async def test_revoking_twice_changes_nothing(database: Database, company: Environments) -> None:
    key = await make_key(database, company.live)
    assert (await revoke(database, key.id)).status == "revoked"
    assert (await revoke(database, key.id)).status == "revoked"


async def test_a_test_clock_moves_forward_and_back_to_the_real_time(database: Database, company: Environments) -> None:
    assert await move_clock(database, company.test, timedelta(hours=25)) == 25 * 3600
    assert await move_clock(database, company.test, timedelta(hours=1)) == 26 * 3600
    assert await move_clock(database, company.test, None) == 0


async def test_a_live_clock_does_not_move(database: Database, company: Environments) -> None:
    for by in (timedelta(hours=1), None):
        with pytest.raises(LiveClock):
            await move_clock(database, company.live, by)


async def test_keys_past_their_expiry_are_listed_as_expired(database: Database, company: Environments) -> None:
    over = await create_key(database, company.test)
    await end_key(database, over.info.id)
    ahead = await create_key(database, company.test, expires_at="2999-01-01T00:00:00Z")
    rotated = await create_key(database, company.test)
    await rotate(database, rotated.info.id)
    await actions.expire_keys(database)
    assert [(await get_key(database, key.info.id)).status for key in (over, ahead, rotated)] == [
        "expired", "active", "active",
    ]  # fmt: skip
    await move_clock(database, company.test, timedelta(hours=24))
    await actions.expire_keys(database)
    assert (await get_key(database, rotated.info.id)).status == "expired"


async def test_a_company_is_found_by_its_name_or_created(database: Database, company: Environments) -> None:
    async with database.transaction() as tx:
        found = await actions.find_or_create_company(tx, company.name, "test")
        made = await actions.find_or_create_company(tx, f"New {uuid4()}", "live")
    assert (found.id, found.environment) == (company.test, "test")
    assert made.id not in {company.live, company.test}
