"""Developer settings: API keys."""

from collections.abc import Callable
from datetime import datetime, timedelta
from secrets import token_hex

from starlette.responses import Response

from sapa.access import actions as access
from sapa.access.types import (
    DEFAULT_RATE_LIMIT,
    KEY_ID,
    KeyIn,
    KeyInfo,
    KeyNotFound,
    KeyProduct,
    Scope,
)
from sapa.console.fields import parse_instant
from sapa.console.routes import (
    DEVELOPERS,
    PageRequest,
    console,
    go_to,
)
from sapa.db.pool import Connection
from sapa.http.errors import Invalid

USES_ARE_LATE = timedelta(seconds=3)
"""Uses are noted every other second, so one from before a rotation may bear a time after it."""


@console.get("/{environment}/keys", roles=DEVELOPERS)
async def list_keys(visit: PageRequest) -> Response:
    async with visit.context.database.connection() as db:
        keys = await access.list_keys(db, visit.company_id)
        ends = await _build_ends(db, visit)
    known = {key.id: key for key in keys}
    successors = {key.id: known[key.replaced_by] for key in keys if key.replaced_by in known}
    still_used = find_still_used(keys, successors)
    return visit.show("keys.html", keys=keys, successors=successors, still_used=still_used, ends=ends)


def find_still_used(keys: list[KeyInfo], successors: dict[str, KeyInfo]) -> set[str]:
    """Keys that somebody went on using after they were rotated."""

    def is_used(key: KeyInfo) -> bool:
        if key.last_used_at is None:
            return False
        rotated = datetime.fromisoformat(successors[key.id].created_at)
        return datetime.fromisoformat(key.last_used_at) > rotated + USES_ARE_LATE

    return {key.id for key in keys if key.id in successors and is_used(key)}


@console.get("/{environment}/keys/new", roles=DEVELOPERS)
async def show_new_key(visit: PageRequest) -> Response:
    return visit.show(
        "key_new.html",
        scopes=list(Scope),
        products=list(KeyProduct),
        chosen=visit.all_given("scope") if visit.form else list(Scope),
        chosen_products=visit.all_given("product") if visit.form else list(KeyProduct),
        given={name: visit.given(name) for name in ("name", "allow_list", "expires_at")},
        rate_limit=visit.given("rate_limit") or DEFAULT_RATE_LIMIT,
        once=token_hex(16),
    )


@console.post("/{environment}/keys", roles=DEVELOPERS, shown_by=show_new_key)
async def create_key(visit: PageRequest) -> Response:
    """The raw key is in this one answer, and in no address: a page that is reloaded says that it was shown."""
    given = KeyIn(
        name=visit.given("name"),
        scopes=visit.all_given("scope"),
        products=visit.all_given("product"),
        allow_list=visit.given("allow_list").replace(",", " ").split(),
        rate_limit=_number(visit.given("rate_limit")),
        expires_at=parse_instant(visit.given("expires_at")) or None,
    )
    if not given.scopes:
        raise Invalid.field("scope", "choose at least one")
    async with visit.context.database.transaction() as tx:
        await visit.take_once(tx)
        new = await access.create_key(tx, visit.company_id, given)
        await visit.record(tx, "key.created", new.info.name)
    return visit.show("key_made.html", new=new, old=None, ends=None)


@console.post("/{environment}/keys/{id}/rotate", roles=DEVELOPERS)
async def rotate_key(visit: PageRequest) -> Response:
    async with visit.context.database.transaction() as tx:
        old = await _get_key(tx, visit)
        new = await access.rotate_key(tx, old.id)
        await visit.record(tx, "key.rotated", old.name)
        old, ends = await _get_key(tx, visit), await _build_ends(tx, visit)
    return visit.show("key_made.html", new=new, old=old, ends=ends)


@console.post("/{environment}/keys/{id}/revoke", roles=DEVELOPERS)
async def revoke_key(visit: PageRequest) -> Response:
    async with visit.context.database.transaction() as tx:
        key = await _get_key(tx, visit)
        await access.revoke_key(tx, key.id)
        await visit.record(tx, "key.revoked", key.name)
    return go_to(visit.path("/keys"))


async def _build_ends(db: Connection, visit: PageRequest) -> Callable[[str], str]:
    """Keys end by company time; when that is by the clock on the wall, which people count down by."""
    ahead = timedelta(seconds=(await access.get_environment(db, visit.company_id)).clock_offset_seconds)
    return lambda until: (datetime.fromisoformat(until) - ahead).isoformat()


async def _get_key(db: Connection, visit: PageRequest) -> KeyInfo:
    """A key of this very environment: another's id is no key at all."""
    id = visit.request.path_params["id"]
    found = next((key for key in await access.list_keys(db, visit.company_id) if key.id == id), None)
    if found is None or not KEY_ID.matches(id):
        raise KeyNotFound("There is no such key.")
    return found


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise Invalid.field("rate_limit", "must be a whole number")
    return int(text)
