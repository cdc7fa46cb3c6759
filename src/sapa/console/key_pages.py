"""Developer settings: API keys."""

from starlette.responses import Response

from sapa.access import actions as access
from sapa.access.types import (
    DATA_SCOPES,
    DEFAULT_RATE_LIMIT,
    KEY_ID,
    ApiKey,
    KeyIn,
    KeyNotFound,
    KeyProduct,
    Scope,
)
from sapa.console.company_clock import CompanyTime
from sapa.console.fields import parse_instant
from sapa.console.page_request import PageRequest
from sapa.console.roles import DEVELOPERS
from sapa.console.routes import console, go_to
from sapa.db.pool import Connection
from sapa.http.errors import Invalid

PRESETS: dict[str, list[Scope]] = {
    "Shop": [scope for scope in DATA_SCOPES if scope.startswith(("customers", "orders", "products"))],
    "Chat": [Scope.MESSAGES_READ, Scope.MESSAGES_WRITE, Scope.CUSTOMERS_READ],
    "Read only": [scope for scope in DATA_SCOPES if scope.endswith(":READ")],
    "Everything but access": DATA_SCOPES,
}
"""What many keys are for."""


@console.get("/{environment}/keys", roles=DEVELOPERS)
async def list_keys(page: PageRequest) -> Response:
    async with page.context.database.connection() as db:
        keys = await access.list_keys(db, page.company_id)
        still_used = await access.list_used_after_rotation(db, page.company_id)
        clock = await _get_clock(db, page)
    by_id = {key.id: key for key in keys}
    successors = {key.id: by_id[key.replaced_by] for key in keys if key.replaced_by in by_id}
    return page.show("keys.html", keys=keys, successors=successors, still_used=still_used, ends=clock.read_real)


@console.get("/{environment}/keys/new", roles=DEVELOPERS)
async def show_new_key(page: PageRequest) -> Response:
    """A preset ticks its scopes and leaves what was typed."""
    preset, is_typed = page.form_value("preset"), page.form and "preset" not in page.form
    return page.show(
        "key_new.html",
        scopes=list(Scope),
        products=list(KeyProduct),
        presets=PRESETS,
        preset=preset,
        chosen=page.form_values("scope") if is_typed else PRESETS.get(preset, []),
        chosen_products=page.form_values("product") if is_typed else list(KeyProduct) if preset == "Shop" else [],
        given={name: page.form_value(name) for name in ("name", "allow_list", "expires_at")},
        rate_limit=page.form_value("rate_limit") or DEFAULT_RATE_LIMIT,
        allows_mcp=page.form_value("mcp") == "1" if page.form else False,
        key=None,
    )


@console.post("/{environment}/keys", roles=DEVELOPERS, shown_by=show_new_key)
async def create_key(page: PageRequest) -> Response:
    """Only this response has the raw key; a reload opens the list."""
    if "preset" in page.form:
        return await show_new_key(page)
    body = KeyIn(
        name=page.form_value("name"),
        scopes=page.form_values("scope"),
        products=page.form_values("product"),
        allow_list=page.form_value("allow_list").replace(",", " ").split(),
        rate_limit=_number(page.form_value("rate_limit")),
        allows_mcp=page.form_value("mcp") == "1",
        expires_at=parse_instant(page, page.form_value("expires_at")) or None,
    )
    if not body.scopes:
        raise Invalid.field("scope", "choose at least one")
    async with page.context.database.transaction() as tx:
        await page.claim_once(tx)
        new = await access.create_key(tx, page.company_id, body)
        await page.record(tx, "key.created", new.info.name)
    page.form_page = page.path("/keys")
    return page.show("key_made.html", new=new, old=None, ends=None)


@console.get("/{environment}/keys/{id}/edit", roles=DEVELOPERS)
async def show_key_form(page: PageRequest) -> Response:
    async with page.context.database.connection() as db:
        key = await _get_key(db, page)
    if page.form:
        given = {name: page.form_value(name) for name in ("name", "allow_list", "expires_at")}
    else:
        given = {"name": key.name, "allow_list": " ".join(key.allow_list), "expires_at": ""}
    return page.show(
        "key_new.html",
        key=key,
        scopes=list(Scope),
        products=list(KeyProduct),
        presets={},
        preset="",
        chosen=page.form_values("scope") if page.form else key.scopes,
        chosen_products=page.form_values("product") if page.form else key.products,
        given=given,
        rate_limit=page.form_value("rate_limit") or key.rate_limit,
        allows_mcp=key.allows_mcp,
    )


@console.post("/{environment}/keys/{id}/edit", roles=DEVELOPERS, shown_by=show_key_form, says="Key updated")
async def change_key(page: PageRequest) -> Response:
    async with page.context.database.transaction() as tx:
        key = await _get_key(tx, page)
        body = KeyIn(
            name=page.form_value("name"),
            scopes=page.form_values("scope"),
            products=page.form_values("product"),
            allow_list=page.form_value("allow_list").replace(",", " ").split(),
            rate_limit=_number(page.form_value("rate_limit")),
        )
        if not body.scopes:
            raise Invalid.field("scope", "choose at least one")
        await access.change_key(tx, page.company_id, key.id, body)
        await page.record(tx, "key.changed", key.name)
    return go_to(page.path("/keys"))


@console.post("/{environment}/keys/{id}/rotate", roles=DEVELOPERS)
async def rotate_key(page: PageRequest) -> Response:
    async with page.context.database.transaction() as tx:
        await page.claim_once(tx)
        old = await _get_key(tx, page)
        new = await access.rotate_key(tx, old.id)
        await page.record(tx, "key.rotated", old.name)
        old, clock = await _get_key(tx, page), await _get_clock(tx, page)
    return page.show("key_made.html", new=new, old=old, ends=clock.read_real)


@console.post("/{environment}/keys/{id}/mcp", roles=DEVELOPERS, says="Saved")
async def set_mcp(page: PageRequest) -> Response:
    is_allowed = page.form_value("mcp") == "1"
    async with page.context.database.transaction() as tx:
        key = await _get_key(tx, page)
        await access.set_mcp(tx, key.id, is_allowed)
        await page.record(tx, "key.mcp_allowed" if is_allowed else "key.mcp_forbidden", key.name)
    return go_to(page.path("/keys"))


@console.post("/{environment}/keys/{id}/revoke", roles=DEVELOPERS, says="Key revoked")
async def revoke_key(page: PageRequest) -> Response:
    async with page.context.database.transaction() as tx:
        key = await _get_key(tx, page)
        _, is_new = await access.revoke_key(tx, key.id)
        if is_new:
            await page.record(tx, "key.revoked", key.name)
    return go_to(page.path("/keys"))


async def _get_clock(db: Connection, page: PageRequest) -> CompanyTime:
    """Keys expire by company time; people count down in real time."""
    return CompanyTime((await access.get_environment(db, page.company_id)).clock_offset_seconds)


async def _get_key(db: Connection, page: PageRequest) -> ApiKey:
    """A key of this environment only."""
    id = page.request.path_params["id"]
    if not KEY_ID.matches(id):
        raise KeyNotFound
    return await access.get_key(db, page.company_id, id)


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise Invalid.field("rate_limit", "must be a whole number")
    return int(text)
