"""Many customers at once, by the same rules as one: what an import writes and an export reads."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Literal

import msgspec
from msgspec import UNSET, Struct

from sapa.customers import actions
from sapa.customers.edit_log import build_edit_log
from sapa.customers.profile import Profile, build_profile, profile_of, revise_profile
from sapa.customers.queries import COLUMNS
from sapa.customers.types import (
    AddressIn,
    Customer,
    CustomerCreated,
    CustomerIn,
    CustomerPatch,
    CustomerRenamed,
    CustomerUpdated,
    build_ref,
)
from sapa.db.pool import Tx
from sapa.db.sql import sql
from sapa.events import emit_all
from sapa.http.errors import ApiError
from sapa.ports import publish
from sapa.timeline import actions as timeline
from sapa.timeline.actions import NewTimelineEntry
from sapa.values.company import Company
from sapa.values.ids import CUSTOMER_ID

Outcome = Literal["created", "updated", "unchanged"]

ALL = sql(f"SELECT {COLUMNS} FROM customers WHERE company_id = $1 ORDER BY created_at, id", row=Customer)

# Each one is looked up by itself (LIMIT keeps the planner from joining), and by no index but its own. A company that is
# just being filled is far larger than its statistics say: a table that was vacuumed while a dry run filled and emptied
# it counts as empty, and then every index that begins with the company seems as good as the one that leads to the row.
# Only that one has the order that is asked for, and sorting is switched off. BETWEEN, since of rows that are equal to
# one value any order would do.
LOCK_MANY = sql(
    f"""
    SELECT {COLUMNS}
      FROM unnest($2::text[]) AS wanted (own)
     CROSS JOIN LATERAL (
           SELECT {COLUMNS} FROM customers
            WHERE company_id = $1 AND external_id BETWEEN wanted.own AND wanted.own
            ORDER BY external_id LIMIT 1 FOR UPDATE) AS c
    UNION ALL
    SELECT {COLUMNS}
      FROM unnest($3::text[]) AS wanted (ours)
     CROSS JOIN LATERAL (
           SELECT {COLUMNS} FROM customers
            WHERE company_id = $1 AND id BETWEEN wanted.ours AND wanted.ours
            ORDER BY id LIMIT 1 FOR UPDATE) AS c""",
    row=Customer,
)

SWITCH_SORTING = sql("SELECT set_config('enable_sort', $1, true)")

# A tag holds no comma, so the tags of one customer travel as one text.
_GIVEN = """unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
                  $10::text[], $11::text[], $12::text[], $13::text[], $14::text[])
           AS given (id, external_id, email, phone_number, first_name, last_name, image_url, tags, addresses,
                     additional_data, subscription_status, email_key, search_text)"""

# What another customer has already is passed over, not looked for first: the unique indexes themselves know best.
INSERT_MANY = sql(
    f"""
    WITH made AS (
        INSERT INTO customers (company_id, id, external_id, email, phone_number, first_name, last_name, image_url, tags,
                               addresses, additional_data, subscription_status, email_key, search_text)
        SELECT $1, id, external_id, email, phone_number, first_name, last_name, image_url, string_to_array(tags, ','),
               addresses::json, additional_data::json, subscription_status::json, email_key, search_text
          FROM {_GIVEN}
            ON CONFLICT DO NOTHING
        RETURNING company_id, {COLUMNS}
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, 'customers', '', count(*) FROM made HAVING count(*) > 0
    )
    SELECT {COLUMNS} FROM made WHERE company_id = $1""",
    row=Customer,
)

# All of them are there, locked by LOCK_MANY, so that nothing is ever inserted: in this form it is the primary key that
# finds them, whatever the statistics say.
UPDATE_MANY = sql(
    f"""
    INSERT INTO customers AS c (company_id, id, external_id, email, phone_number, first_name, last_name, image_url,
                                tags, addresses, additional_data, subscription_status, email_key, search_text)
    SELECT $1, id, external_id, email, phone_number, first_name, last_name, image_url, string_to_array(tags, ','),
           addresses::json, additional_data::json, subscription_status::json, email_key, search_text
      FROM {_GIVEN}
        ON CONFLICT (company_id, id) DO UPDATE
       SET external_id = excluded.external_id, email = excluded.email, phone_number = excluded.phone_number,
           first_name = excluded.first_name, last_name = excluded.last_name, image_url = excluded.image_url,
           tags = excluded.tags, addresses = excluded.addresses, additional_data = excluded.additional_data,
           subscription_status = excluded.subscription_status, email_key = excluded.email_key,
           search_text = excluded.search_text, updated_at = GREATEST(clock_timestamp(), c.updated_at)
    RETURNING {COLUMNS}""",
    row=Customer,
)


class BulkCustomer(Struct, frozen=True):
    """One customer of many: found by the caller's own id, else by ours, else new."""

    external_id: str | None
    id: str | None
    patch: CustomerPatch


class Change(Struct, frozen=True):
    """One customer's way from what it was to what it is to be."""

    place: int
    known: Customer | None
    profile: Profile


async def store(tx: Tx, company: Company, given: BulkCustomer) -> Outcome:
    """Creates or updates one customer."""
    known = (await _find_known(tx, company, [given]))[0]
    if known is None:
        await actions.create(tx, company, _as_new(given))
        return "created"
    customer = await actions.update(tx, company, known.id, _for(known, given))
    return "unchanged" if profile_of(customer) == profile_of(known) else "updated"


async def store_together(tx: Tx, company: Company, given: Sequence[BulkCustomer]) -> list[Outcome | None]:
    """Creates and updates many in a few statements.

    None for those that have to be stored one by one after the others, in their order: they are not valid, or they
    meet another customer, of this company or among the given, in an own id, an e-mail address or a phone number.
    """
    found = await _find_known(tx, company, given)
    changes = [_change(company, place, one, found[place]) for place, one in enumerate(given)]
    outcomes: list[Outcome | None] = [None] * len(given)
    new, changed = [], []
    for change in _without_clashes([change for change in changes if change is not None]):
        if change.known is None:
            new.append(change)
        elif change.profile == profile_of(change.known):
            outcomes[change.place] = "unchanged"
        elif _keeps_contact(change.profile, profile_of(change.known)):
            changed.append(change)
    for place in await _insert(tx, company, new):
        outcomes[place] = "created"
    for place in await _update(tx, company, changed):
        outcomes[place] = "updated"
    return outcomes


def _keeps_contact(profile: Profile, before: Profile) -> bool:
    """Whether it cannot meet another customer by the change."""
    return (profile.email_key, profile.phone_number) == (before.email_key, before.phone_number)


async def _find_known(tx: Tx, company: Company, given: Sequence[BulkCustomer]) -> list[Customer | None]:
    own = [one.external_id for one in given if one.external_id]
    ours = [one.id for one in given if one.id and not one.external_id]
    known = await _lock(tx, company, own, ours) if own or ours else []
    by_own = {customer.external_id: customer for customer in known}
    by_ours = {customer.id: customer for customer in known}
    return [by_own.get(one.external_id) if one.external_id else by_ours.get(one.id or "") for one in given]


async def _lock(tx: Tx, company: Company, own: Sequence[str], ours: Sequence[str]) -> list[Customer]:
    async with _without_sorting(tx):
        return await LOCK_MANY.all(tx, company.id, own, ours)


async def _tell(tx: Tx, company: Company, happenings: Sequence[NewTimelineEntry]) -> None:
    async with _without_sorting(tx):
        await timeline.record_all(tx, company, happenings)


@asynccontextmanager
async def _without_sorting(tx: Tx) -> AsyncIterator[None]:
    """What fails in the block takes the switch back along with the rest."""
    await SWITCH_SORTING.value(tx, "off")
    yield
    await SWITCH_SORTING.value(tx, "on")


def _change(company: Company, place: int, given: BulkCustomer, known: Customer | None) -> Change | None:
    try:
        if known is None:
            return Change(place, None, build_profile(company, _as_new(given)))
        return Change(place, known, revise_profile(company, known, _for(known, given)))
    except ApiError:
        return None


def _as_new(given: BulkCustomer) -> CustomerIn:
    patch = _with_addresses(given.patch, keep=frozenset())
    fields = {name: value for name in patch.__struct_fields__ if (value := getattr(patch, name)) is not UNSET}
    return CustomerIn(external_id=given.external_id, **fields)


def _for(known: Customer, given: BulkCustomer) -> CustomerPatch:
    if not given.patch.addresses:
        return given.patch
    ids = {address["id"] for address in msgspec.json.decode(known.addresses)}
    return _with_addresses(given.patch, keep=frozenset(ids))


def _with_addresses(patch: CustomerPatch, keep: frozenset[str]) -> CustomerPatch:
    """An address's id means something to the customer that has it; from elsewhere it is left out."""
    if not patch.addresses:
        return patch
    addresses = [_without_id(address) if address.id not in keep else address for address in patch.addresses]
    return msgspec.structs.replace(patch, addresses=addresses)


def _without_id(address: AddressIn) -> AddressIn:
    return address if address.id is None else msgspec.structs.replace(address, id=None)


def _without_clashes(changes: Sequence[Change]) -> list[Change]:
    met: set[tuple[str, str]] = set()
    free = []
    for change in changes:
        keys = set(_keys(change))
        if keys.isdisjoint(met):
            free.append(change)
        met |= keys
    return free


def _keys(change: Change) -> Iterable[tuple[str, str]]:
    """What no other customer may have: what it is to be, and what it was."""
    profiles = [change.profile] if change.known is None else [change.profile, profile_of(change.known)]
    for profile in profiles:
        if profile.external_id:
            yield "own", profile.external_id
        if profile.email_key:
            yield "email", profile.email_key
        if profile.phone_number:
            yield "phone", profile.phone_number
    if change.known is not None:
        yield "id", change.known.id


async def _insert(tx: Tx, company: Company, changes: Sequence[Change]) -> list[int]:
    """The places of those that could be inserted."""
    if not changes:
        return []
    places = {CUSTOMER_ID.new(): change.place for change in changes}
    customers = await INSERT_MANY.all(tx, company.id, list(places), *_columns(changes))
    if customers:
        await emit_all(tx, company, [CustomerCreated(customer) for customer in customers])
    await _tell(tx, company, [NewTimelineEntry(customer.id, "customer_created") for customer in customers])
    return [places[customer.id] for customer in customers]


async def _update(tx: Tx, company: Company, changes: Sequence[Change]) -> list[int]:
    if not changes:
        return []
    ids = [change.known.id for change in changes if change.known]
    customers = await UPDATE_MANY.all(tx, company.id, ids, *_columns(changes))
    shown = {known.id: build_ref(known) for change in changes if (known := change.known)}
    for customer in customers:
        if build_ref(customer) != shown[customer.id]:
            await publish(tx, company, CustomerRenamed(build_ref(customer)))
    await emit_all(tx, company, [CustomerUpdated(customer) for customer in customers])
    told = [
        NewTimelineEntry(known.id, "customer_updated", edit_log=build_edit_log(profile_of(known), change.profile))
        for change in changes
        if (known := change.known)
    ]
    await _tell(tx, company, told)
    return [change.place for change in changes]


def _columns(changes: Sequence[Change]) -> list[list[str | None]]:
    """The changes' profiles, column by column."""
    rows = [_texts(change.profile) for change in changes]
    return [list(column) for column in zip(*rows, strict=True)]


def _texts(profile: Profile) -> tuple[str | None, ...]:
    return (
        profile.external_id,
        profile.email,
        profile.phone_number,
        profile.first_name,
        profile.last_name,
        profile.image_url,
        ",".join(profile.tags),
        profile.addresses.decode(),
        profile.additional_data.decode(),
        profile.subscription_status.decode(),
        profile.email_key,
        profile.search_text,
    )


def list_keys(company: Company, given: BulkCustomer) -> list[str]:
    """What no other customer may have, of one that is not stored; nothing of one that is not valid."""
    contact = {name: value for name in ("email", "phone_number") if (value := getattr(given.patch, name))}
    try:
        profile = build_profile(company, CustomerIn(**contact))
    except ApiError:
        return []
    keys = {"email": profile.email_key, "phoneNumber": profile.phone_number}
    return [f"{name}:{key}" for name, key in keys.items() if key]
