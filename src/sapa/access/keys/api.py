"""How API keys are managed over HTTP."""

from datetime import datetime

from msgspec import UNSET
from msgspec.structs import asdict

from sapa.access import actions
from sapa.access.keys.rights import check_rights
from sapa.access.keys.types import ApiKeyIn, ApiKeyPatch, ApiKeysQuery, BeyondOwnRights, NewApiKey
from sapa.access.types import (
    DEFAULT_RATE_LIMIT,
    ApiKey,
    KeyId,
    KeyIn,
    KeyNotActive,
    KeyNotFound,
    NewKey,
    Scope,
)
from sapa.http.endpoints import Base, Call, Routes, ToolTraits
from sapa.http.responses import Page, build_page
from sapa.values.instants import format_instant

routes = Routes(
    "/api-keys",
    base=Base.CUSTOMER,
    tag="API keys",
    about="The company's keys, and the log of the calls that were made with them.",
)


@routes.get("", scope=Scope.KEYS_READ)
async def list_api_keys(call: Call, query: ApiKeysQuery) -> Page[ApiKey]:
    """List the keys of the company's environment, without their values.

    The newest first, with revoked and expired keys.
    """
    keys, total = await actions.list_page_of_keys(call.db, call.company.id, query.status, query.limit, query.offset)
    return build_page(keys, query.page, query.limit, total)


@routes.post(
    "",
    scope=Scope.KEYS_WRITE,
    raises=[BeyondOwnRights],
    tool=ToolTraits(hidden="Its response has a secret, which a model must not read."),
)
async def create_api_key(call: Call, body: ApiKeyIn) -> NewApiKey:
    """Create a key.

    Its value, `key`, is shown only in this response. A key can create keys with at most its own scopes, products,
    addresses and rate limit, and for at most as long as it works itself. What you leave out is taken from your key,
    except scopes and products.
    """
    own, _ = await actions.lock_own_key(call.db, call.key)
    new = await actions.create_key(call.db, call.company.id, _build_key(own, body))
    check_rights(own, new.info)  # as it is stored: its addresses and times are normalised
    await actions.record_change(call.db, call.key, call.address, "key.created", new.info.name)
    return _build_new_key(new)


@routes.get("/{id}", scope=Scope.KEYS_READ, raises=[KeyNotFound])
async def get_api_key(call: Call, id: KeyId) -> ApiKey:
    """Get one key, without its value."""
    return await actions.get_key(call.db, call.company.id, id)


@routes.put("/{id}", scope=Scope.KEYS_WRITE, raises=[KeyNotFound, KeyNotActive, BeyondOwnRights])
async def update_api_key(call: Call, id: KeyId, body: ApiKeyPatch) -> ApiKey:
    """Change a key: its name, scopes, products, addresses and rate limit, and whether AI agents may use it.

    Every server follows within a second. Before and after, it can have at most the rights of your key; any key can be
    closed to AI agents.
    """
    own, key = await actions.lock_own_key(call.db, call.key, id)
    changed, wanted = key, _merge(key, body)
    if wanted != _merge(key, ApiKeyPatch()):
        check_rights(own, key)
        changed = await actions.change_key(call.db, call.company.id, key.id, wanted)
        check_rights(own, changed)
        await actions.record_change(call.db, call.key, call.address, "key.changed", changed.name)
    if body.allows_mcp is not UNSET and body.allows_mcp != key.allows_mcp:
        changed = await actions.set_mcp(call.db, key.id, body.allows_mcp)
        if changed.allows_mcp:
            check_rights(own, changed)
        action = "key.mcp_allowed" if changed.allows_mcp else "key.mcp_forbidden"
        await actions.record_change(call.db, call.key, call.address, action, changed.name)
    return changed


@routes.post(
    "/{id}/rotate",
    scope=Scope.KEYS_WRITE,
    status=200,
    raises=[KeyNotFound, BeyondOwnRights, KeyNotActive],
    tool=ToolTraits(hidden="Its response has a secret, which a model must not read."),
)
async def rotate_api_key(call: Call, id: KeyId) -> NewApiKey:
    """Replace a key by a new one with the same rights.

    The old key works for 24 more hours. The new key's value is shown only in this response. A key can rotate itself,
    and keys that have at most its own rights.
    """
    own, old = await actions.lock_own_key(call.db, call.key, id)
    check_rights(own, old)
    new = await actions.rotate_key(call.db, old.id)
    await actions.record_change(call.db, call.key, call.address, "key.rotated", old.name)
    return _build_new_key(new)


@routes.delete("/{id}", scope=Scope.KEYS_DELETE, raises=[KeyNotFound])
async def revoke_api_key(call: Call, id: KeyId) -> None:
    """Revoke a key.

    It stops working within a second and stays in the list as revoked. A key can revoke any key of its company's
    environment, also itself. Revoking it again changes nothing.
    """
    key = await actions.get_key(call.db, call.company.id, id)
    _, is_new = await actions.revoke_key(call.db, key.id)
    if is_new:
        await actions.record_change(call.db, call.key, call.address, "key.revoked", key.name)


def _merge(key: ApiKey, body: ApiKeyPatch) -> KeyIn:
    return KeyIn(
        name=key.name if body.name is UNSET else body.name,
        scopes=key.scopes if body.scopes is UNSET else list(body.scopes),
        products=key.products if body.products is UNSET else list(body.products),
        allow_list=key.allow_list if body.allow_list is UNSET else body.allow_list,
        rate_limit=key.rate_limit if body.rate_limit is UNSET else body.rate_limit,
    )


def _build_key(own: ApiKey, body: ApiKeyIn) -> KeyIn:
    return KeyIn(
        name=body.name,
        scopes=list(body.scopes),
        products=list(body.products),
        allow_list=own.allow_list if body.allow_list is UNSET else body.allow_list,
        rate_limit=min(DEFAULT_RATE_LIMIT, own.rate_limit) if body.rate_limit is UNSET else body.rate_limit,
        allows_mcp=own.allows_mcp if body.allows_mcp is UNSET else body.allows_mcp,
        expires_at=own.expires_at if body.expires_at is UNSET else _format(body.expires_at),
    )


def _format(instant: datetime | None) -> str | None:
    return None if instant is None else format_instant(instant)


def _build_new_key(new: NewKey) -> NewApiKey:
    return NewApiKey(**asdict(new.info), key=new.key)
