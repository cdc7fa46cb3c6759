"""How companies and keys change; used by the API, the console and the command line."""

import time
from collections.abc import Collection
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import UNSET

from sapa.access import queries
from sapa.access.types import (
    DEFAULT_RATE_LIMIT,
    KEY_ID,
    MAX_RATE_LIMIT,
    ApiKey,
    CompanyClock,
    CompanyRow,
    CompanySettings,
    CompanySettingsPatch,
    KeyIn,
    KeyNotActive,
    KeyNotFound,
    KeyProduct,
    LiveClock,
    ManagementChange,
    NewCompany,
    NewKey,
    Scope,
)
from sapa.db.pool import Connection, Database, Tx, announce_all_due
from sapa.http.allow_list import AllowList, BadAllowList, parse_allow_list
from sapa.http.errors import Invalid, InvalidApiKey
from sapa.http.keys import CHANNEL, GRACE_SECONDS, PREFIXES, Key, Retirement, hash_key, new_key
from sapa.http.query_string import BadValue, parse_date_time
from sapa.ports import publish
from sapa.values.company import Company
from sapa.values.money import BadMoney, parse_currency
from sapa.values.phones import is_region

LONGEST_NAME = 100
USE_DELAY = timedelta(seconds=3)
"""Uses are recorded every other second, so one before a rotation may have a time after it."""


async def create_company(tx: Tx, name: str, region: str = "ID", currency: str = "IDR") -> NewCompany:
    """A company with its live and its test environment."""
    if not is_region(region.upper()):
        raise Invalid.field("region", "must be an ISO 3166 country code, such as ID")
    if not (len(currency) == 3 and currency.isascii() and currency.isalpha()):
        raise Invalid.field("currency", "must be an ISO 4217 currency code, such as IDR")
    return await queries.insert_company(tx, _checked_name(name), region.upper(), currency.upper())


async def find_or_create_company(tx: Tx, name: str, environment: str) -> Company:
    """One environment of the company with this name; creates the company if it does not exist."""
    if not any(row.name == name for row in await queries.list_companies(tx)):
        await create_company(tx, name)
    row = next(row for row in await queries.list_companies(tx) if (row.name, row.environment) == (name, environment))
    return row.company


async def get_company(db: Connection, company_id: int) -> Company:
    """One environment of a company, by its id."""
    return (await queries.get_company(db, company_id)).company


async def list_companies(db: Connection) -> list[CompanyRow]:
    """Every environment of every company."""
    return await queries.list_companies(db)


async def lock_first_start(tx: Tx) -> None:
    """Serializes first starts on one database until the transaction ends."""
    await queries.lock_first_start(tx)


async def get_environment(db: Connection, company_id: int) -> CompanyRow:
    """One environment of a company, with its name and clock."""
    return await queries.get_company(db, company_id)


async def rename_company(tx: Tx, company_id: int, name: str) -> CompanyRow:
    """Renames both environments."""
    await queries.rename_company(tx, company_id, _checked_name(name))
    return await queries.get_company(tx, company_id)


async def get_settings(db: Connection, company_id: int) -> CompanySettings:
    return _build_settings(await queries.get_company(db, company_id))


async def change_settings(tx: Tx, company_id: int, patch: CompanySettingsPatch) -> CompanySettings:
    """Acts on every process within a second."""
    row = await queries.lock_settings(tx, company_id)
    before = row.company
    changed = Company(
        id=before.id,
        environment=before.environment,
        region=before.region if patch.country is UNSET else _checked_country(patch.country),
        currency=before.currency if patch.currency is UNSET else _checked_currency(patch.currency),
        time_zone=before.time_zone if patch.time_zone is UNSET else await get_time_zone(tx, patch.time_zone),
        language=before.language if patch.language is UNSET else patch.language,
        cart_orders=before.cart_orders if patch.cart_orders is UNSET else patch.cart_orders,
    )
    if changed != before:
        await queries.update_settings(tx, changed)
        await announce_change(tx, company_id)
    return _build_settings(await queries.get_company(tx, company_id))


async def create_key(tx: Tx, company_id: int, body: KeyIn) -> NewKey:
    new = await _insert_key(tx, company_id, body)
    if not await queries.is_valid(tx, company_id, new.info.id):
        raise Invalid.field("expiresAt", "must be in the future")
    return new


async def _insert_key(tx: Tx, company_id: int, body: KeyIn) -> NewKey:
    company = await queries.get_company(tx, company_id)
    raw = new_key(company.environment)
    info = await queries.insert_key(
        tx, company_id, KEY_ID.new(), _checked_name(body.name), hash_key(raw), PREFIXES[company.environment], raw[-4:],
        _checked_words("scopes", body.scopes, list(Scope)), _checked_words("products", body.products, list(KeyProduct)),
        _checked_allow_list(body.allow_list), _checked_rate_limit(body.rate_limit), body.allows_mcp,
        _checked_instant(body.expires_at) if body.expires_at else None,
    )  # fmt: skip
    return NewKey(raw, info)


async def list_keys(db: Connection, company_id: int | None) -> list[ApiKey]:
    """The keys of a company, or of all; without their secret values."""
    return await queries.list_keys(db, company_id)


async def list_page_of_keys(
    db: Connection, company_id: int, status: str | None, limit: int, offset: int
) -> tuple[list[ApiKey], int]:
    """The newest first, with their number."""
    return await queries.list_page_of_keys(db, company_id, status, limit, offset)


async def get_key(db: Connection, company_id: int, id: str) -> ApiKey:
    """A key of this company only."""
    return await queries.get_key_of(db, company_id, id)


async def lock_own_key(tx: Tx, key: Key, other: str | None = None) -> tuple[ApiKey, ApiKey]:
    """The caller's key as it is now, and another one that the caller changes (its own if there is none).

    A key may have been revoked, rotated or changed since the call began; what it makes would outlive it.
    """
    locked = await queries.lock_keys(tx, key.company.id, [key.id, other or key.id])
    if not await queries.is_valid(tx, key.company.id, key.id):
        raise InvalidApiKey
    if other is not None and other not in locked:
        raise KeyNotFound
    return locked[key.id], locked[other or key.id]


async def list_beyond(db: Connection, reader: Key, raw_keys: Collection[str]) -> set[str]:
    """Those of the reader's company that work now and have a scope or product that the reader lacks."""
    # For a reader that has everything nothing is looked up.
    if not raw_keys or (reader.scopes.issuperset(Scope) and reader.products.issuperset(KeyProduct)):
        return set()
    by_hash = {hash_key(raw): raw for raw in raw_keys}
    scopes, products = list(reader.scopes), list(reader.products)
    beyond = await queries.list_beyond(db, reader.company.id, list(by_hash), scopes, products)
    return {by_hash[hash] for hash in beyond}


async def list_used_after_rotation(db: Connection, company_id: int) -> set[str]:
    """The ids of keys that were rotated and are still in use."""
    return await queries.list_used_after_rotation(db, company_id, USE_DELAY)


async def rotate_key(tx: Tx, id: str) -> NewKey:
    """A new key with the same scopes and expiry; the old one works until its grace period ends."""
    old = await queries.get_key(tx, id)
    successor = KeyIn(
        name=old.name,
        scopes=old.scopes,
        products=old.products,
        allow_list=old.allow_list,
        rate_limit=old.rate_limit,
        allows_mcp=old.allows_mcp,
        expires_at=old.expires_at,
    )
    new = await _insert_key(tx, old.company_id, successor)
    if not await queries.replace_key(tx, old.company_id, id, new.info.id, GRACE_SECONDS):
        raise KeyNotActive
    await announce_change(tx, old.company_id)
    return new


async def set_mcp(tx: Tx, id: str, is_allowed: bool) -> ApiKey:
    """Says whether AI agents may use a key with MCP; every process follows within a second."""
    key = await queries.get_key(tx, id)
    await queries.set_mcp(tx, key.company_id, id, is_allowed)
    await announce_change(tx, key.company_id)
    return await queries.get_key(tx, id)


async def change_key(tx: Tx, company_id: int, id: str, body: KeyIn) -> ApiKey:
    """Its name, scopes, products, addresses and rate limit; every process follows within a second. Raises KeyNotActive
    for a key that does not work any more."""
    is_changed = await queries.update_key(
        tx, company_id, id, _checked_name(body.name), _checked_words("scopes", body.scopes, list(Scope)),
        _checked_words("products", body.products, list(KeyProduct)), _checked_allow_list(body.allow_list),
        _checked_rate_limit(body.rate_limit),
    )  # fmt: skip
    if not is_changed:
        raise KeyNotActive
    await announce_change(tx, company_id)
    return await queries.get_key(tx, id)


async def revoke_key(tx: Tx, id: str) -> tuple[ApiKey, bool]:
    """Stops a key on every process within a second. The key, and whether it is only revoked now: revoking it again
    changes nothing."""
    key = await queries.get_key(tx, id)
    is_new = await queries.revoke_key(tx, key.company_id, id)
    if is_new:
        await announce_change(tx, key.company_id)
    return await queries.get_key(tx, id), is_new


async def read_clock(db: Connection, company_id: int) -> CompanyClock:
    """The one reading of a company's time: every rule that compares instants uses it."""
    return await queries.read_clock(db, company_id)


async def move_clock(tx: Tx, company_id: int, by: timedelta | None) -> CompanyRow:
    """Moves a test environment's clock forward, or back to the real time with None."""
    if not (await get_company(tx, company_id)).is_test:
        raise LiveClock
    await queries.move_clock(tx, company_id, by)
    announce_all_due(tx)
    await announce_change(tx, company_id)
    return await queries.get_company(tx, company_id)


async def expire_keys(database: Database) -> None:
    """The worker's job: marks keys past their expiry as expired."""
    async with database.transaction() as tx:
        for company_id in await queries.expire_keys(tx):
            await announce_change(tx, company_id)


async def announce_change(tx: Tx, company_id: int) -> None:
    await queries.announce(tx, CHANNEL, str(company_id))


async def record_change(tx: Tx, key: Key, address: str, action: str, subject: str) -> None:
    """For the audit log, in the transaction of the change. The console records its own changes."""
    if key.user is None:
        await publish(tx, key.company, ManagementChange(key.id, address, action, subject))


async def record_use(db: Connection, addresses: dict[str, str]) -> None:
    """Records when and from where each key was last used; sorted, so that processes do not deadlock."""
    ids = sorted(addresses)
    await queries.record_use(db, ids, [addresses[id] for id in ids])


async def get_highest_rate_limit(db: Connection, company_id: int) -> int:
    """Of the company's keys, for calls that come without one."""
    return await queries.find_highest_rate_limit(db, company_id) or DEFAULT_RATE_LIMIT


async def load_key(db: Connection, hash: bytes) -> Key | None:
    """A valid key for the edge, or None."""
    read_at = time.monotonic()
    stored = await queries.find_valid_key(db, hash)
    if stored is None:
        return None
    since, stops = stored.retired_since, stored.stops
    return Key(
        id=stored.id,
        company=Company(
            stored.company_id, stored.environment, stored.region, stored.currency, stored.time_zone, stored.language
        ),
        scopes=frozenset(stored.scopes),
        products=frozenset(stored.products),
        allow_list=AllowList(stored.allow_list),
        rate_limit=stored.rate_limit,
        allows_mcp=stored.allows_mcp,
        ends=None if stored.ends_in is None else read_at + stored.ends_in,
        retirement=None if since is None or stops is None else Retirement(since, stops),
    )


def _build_settings(row: CompanyRow) -> CompanySettings:
    return CompanySettings(
        id=row.company_id,
        name=row.name,
        environment="test" if row.company.is_test else "live",
        country=row.region,
        currency=row.currency,
        language="en" if row.language == "en" else "id",
        time_zone=row.time_zone,
        cart_orders=row.cart_orders,
    )


def _checked_country(code: str) -> str:
    if not is_region(code):
        raise Invalid.field("country", "must be an ISO 3166 country code, such as ID")
    return code


def _checked_currency(code: str) -> str:
    try:
        return parse_currency(code)
    except BadMoney as error:
        raise Invalid.field("currency", str(error)) from None


async def get_time_zone(db: Connection, name: str) -> str:
    """The name, if it is a time zone that this system and the database know; raises Invalid otherwise."""
    # Names in folders are places; those outside are abbreviations and rules, which differ between systems. The folders
    # posix and right, which some systems have, hold the same places again. The database counts the days of reports, and
    # pages show times: both must know it.
    is_place = name == "UTC" or ("/" in name and not name.startswith(("posix/", "right/")))
    if not is_place or not _is_known_here(name) or not await queries.has_time_zone(db, name):
        raise Invalid.field("timeZone", "must be an IANA time zone, such as Asia/Jakarta")
    return name


def _is_known_here(time_zone: str) -> bool:
    try:
        ZoneInfo(time_zone)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        return False
    return True


def _checked_name(name: str) -> str:
    name = name.strip()
    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
        raise Invalid.field("name", f"must have 1 to {LONGEST_NAME} printable characters")
    return name


def _checked_words(kind: str, words: list[str], allowed: list[str]) -> list[str]:
    unknown = [word for word in words if word not in allowed]
    if unknown:
        raise Invalid.field(kind, f"{unknown[0]!r} is unknown; use one of {', '.join(allowed)}")
    return [word for word in allowed if word in words]


def _checked_allow_list(entries: list[str]) -> list[str]:
    try:
        return parse_allow_list(entries)
    except BadAllowList as error:
        raise Invalid.field("allowList", str(error)) from None


def _checked_rate_limit(limit: int) -> int:
    if not 1 <= limit <= MAX_RATE_LIMIT:
        raise Invalid.field("rateLimit", f"must be from 1 to {MAX_RATE_LIMIT} requests a minute")
    return limit


def _checked_instant(text: str) -> datetime:
    try:
        return parse_date_time(text)
    except BadValue as error:
        raise Invalid.field("expiresAt", str(error)) from None
