"""How webhook endpoints change. The API, the console and the command line call these."""

from functools import partial

from msgspec import UNSET
from yarl import URL

from sapa.access.types import CompanyNotFound
from sapa.db.pool import Connection, Database, Tx, announce_due, notify_after_commit
from sapa.db.wakeups import DueQueue
from sapa.events import CHANNEL
from sapa.http.errors import Invalid
from sapa.settings import WebhookSettings
from sapa.values.sealing import ResealedBatch, Vault
from sapa.webhooks.endpoints import queries
from sapa.webhooks.endpoints.fields import (
    build_endpoint,
    check_description,
    check_events,
    check_headers,
    check_url,
    open_headers,
    seal_headers,
    seal_secret,
)
from sapa.webhooks.signing import new_secret
from sapa.webhooks.types import (
    ENDPOINT_ID,
    MAX_ENDPOINTS,
    NOTICE_ID,
    EndpointActive,
    EndpointNotActive,
    EndpointNotFound,
    Missed,
    NewSecret,
    Notice,
    OverlapRuns,
    StoredEndpoint,
    WebhookEndpoint,
    WebhookEndpointIn,
    WebhookEndpointPatch,
    WebhookLimit,
)

MAX_NOTICES = 100
DELETE_BATCH = 2_000
"""How many queued deliveries of a deleted endpoint go in one transaction."""
RESUMED = "webhook.resumed"
CATCH_UP = DueQueue("resumed webhooks", queries.NEXT_RESUMED.text)
"""Endpoints that get what they missed."""


async def create(
    tx: Tx, vault: Vault, settings: WebhookSettings, company_id: int, body: WebhookEndpointIn
) -> NewSecret:
    """The endpoint gets events from now on. Its secret is returned here and cannot be read again."""
    url = check_url(body.url, settings)
    kinds, description = check_events(body.events), check_description(body.description)
    headers = check_headers(body.headers)
    if not await queries.lock_company(tx, company_id):
        raise CompanyNotFound
    if await queries.count_endpoints(tx, company_id) >= MAX_ENDPOINTS:
        raise WebhookLimit
    id, secret = ENDPOINT_ID.new(), new_secret()
    stored = await queries.insert_endpoint(
        tx, company_id, id, url, kinds, description,
        seal_headers(vault, company_id, id, headers), seal_secret(vault, company_id, id, secret), body.auto_resume,
    )  # fmt: skip
    return NewSecret(secret, build_endpoint(vault, stored))


async def update(
    tx: Tx, vault: Vault, settings: WebhookSettings, company_id: int, id: str, patch: WebhookEndpointPatch
) -> WebhookEndpoint:
    """Queued deliveries use the changed fields, too."""
    locked = await queries.lock_endpoint(tx, company_id, id)
    url = locked.url if patch.url is UNSET else check_url(patch.url, settings)
    kinds = locked.kinds if patch.events is UNSET else check_events(patch.events)
    description = locked.description if patch.description is UNSET else check_description(patch.description)
    headers = _keep_headers(vault, locked, url) if patch.headers is UNSET else check_headers(patch.headers)
    if patch.auto_resume is not UNSET:
        await queries.set_auto_resume(tx, company_id, id, patch.auto_resume)
    stored = await queries.update_endpoint(
        tx, company_id, id, url, kinds, description, seal_headers(vault, company_id, id, headers)
    )
    return build_endpoint(vault, stored)


def _keep_headers(vault: Vault, locked: StoredEndpoint, url: str) -> dict[str, str]:
    """Headers may hold passwords, so another receiver does not get them."""
    headers = open_headers(vault, locked)
    if headers and URL(url).origin() != URL(locked.url).origin():
        raise Invalid.field("headers", "must be entered again, because the URL's origin changes")
    return headers


async def pause(tx: Tx, vault: Vault, company_id: int, id: str) -> tuple[WebhookEndpoint, bool]:
    """Holds deliveries until the endpoint is resumed. The endpoint, and whether it is only paused now: pausing it again
    changes nothing."""
    await queries.lock_lane(tx, company_id, id)
    is_new = await queries.pause_endpoint(tx, company_id, id)
    return build_endpoint(vault, await queries.get_endpoint(tx, company_id, id)), is_new


async def resume(tx: Tx, vault: Vault, company_id: int, id: str, missed: Missed) -> WebhookEndpoint:
    """Reactivates a paused or suspended endpoint; `missed` chooses which missed events it gets."""
    await queries.get_endpoint(tx, company_id, id)
    if not await queries.resume_endpoint(tx, company_id, id, missed, ["paused", "suspended"]):
        raise EndpointActive
    notify_after_commit(tx, CHANNEL)
    announce_due(tx, CATCH_UP)
    return build_endpoint(vault, await queries.get_endpoint(tx, company_id, id))


async def resume_probed(tx: Tx, company_id: int, id: str, status: int | None) -> bool:
    """Resumes an endpoint that accepted a probe, with everything it missed. False when it is not suspended any more."""
    if not await queries.resume_endpoint(tx, company_id, id, Missed.ALL, ["suspended"]):
        return False
    announce_due(tx, CATCH_UP)
    message = f"The endpoint accepted a probe with {status} and was resumed. What it missed is delivered in order."
    await queries.insert_notice(tx, company_id, NOTICE_ID.new(), RESUMED, id, message)
    notify_after_commit(tx, CHANNEL)
    return True


async def rotate(tx: Tx, vault: Vault, company_id: int, id: str, end_overlap: bool = False) -> NewSecret:
    """Makes a new secret. For 24 hours deliveries are also signed with the old one; an even older one ends at once."""
    locked = await queries.lock_endpoint(tx, company_id, id)
    if locked.previous_until is not None and not end_overlap:
        raise OverlapRuns(
            f"The previous secret is valid until {locked.previous_until}, and rotating again would invalidate it now. "
            "Wait, or end the overlap: `endOverlap` in the API, --end-overlap in the command."
        )
    secret = new_secret()
    stored = await queries.rotate_secret(tx, company_id, id, seal_secret(vault, company_id, id, secret))
    return NewSecret(secret, build_endpoint(vault, stored))


async def reseal(tx: Tx, vault: Vault, company_id: int, after: str, limit: int) -> ResealedBatch:
    """One batch of a rotation of the secret key."""
    batch = vault.reseal(await queries.lock_sealed(tx, company_id, after, limit), company_id)
    await queries.replace_sealed(tx, company_id, batch.sealed)
    return batch


async def delete_queued(database: Database, company_id: int, id: str) -> None:
    """Ahead of `delete`: many deliveries may be queued."""
    await database.transact_in_batches(partial(_delete_queued, company_id=company_id, id=id), DELETE_BATCH)


async def delete(tx: Tx, company_id: int, id: str) -> None:
    """Deletes the endpoint and its queued deliveries; the history of its deliveries stays."""
    while await _delete_queued(tx, company_id, id):
        pass
    await queries.lock_endpoint(tx, company_id, id)
    await queries.delete_endpoint(tx, company_id, id)


async def _delete_queued(tx: Tx, company_id: int, id: str) -> int:
    await queries.lock_lane(tx, company_id, id)
    return await queries.delete_queued(tx, company_id, id, DELETE_BATCH)


async def get(db: Connection, vault: Vault, company_id: int, id: str) -> WebhookEndpoint:
    return build_endpoint(vault, await queries.get_endpoint(db, company_id, id))


async def list_endpoints(db: Connection, vault: Vault, company_id: int) -> list[WebhookEndpoint]:
    return [build_endpoint(vault, stored) for stored in await queries.list_endpoints(db, company_id)]


async def list_stored(db: Connection, company_id: int) -> list[StoredEndpoint]:
    """With sealed secrets, for the dispatcher."""
    return await queries.list_endpoints(db, company_id)


async def list_suspended(db: Connection, company_id: int) -> list[StoredEndpoint]:
    """Those that were suspended first come first."""
    return await queries.list_suspended(db, company_id)


async def get_stored(db: Connection, company_id: int, id: str) -> StoredEndpoint:
    return await queries.get_endpoint(db, company_id, id)


async def get_active(db: Connection, company_id: int, id: str) -> StoredEndpoint:
    """Raises when the endpoint is paused, suspended or still catching up."""
    stored = await queries.get_endpoint(db, company_id, id)
    if stored.status != "active":
        raise EndpointNotActive
    if stored.catch_up is not None:
        raise EndpointNotActive("The webhook endpoint is still catching up; try again in a moment.")
    return stored


async def get_company_of(db: Connection, id: str) -> int:
    company_id = await queries.find_company(db, id) if ENDPOINT_ID.matches(id) else None
    if company_id is None:
        raise EndpointNotFound
    return company_id


async def list_notices(db: Connection, company_id: int) -> list[Notice]:
    """Newest first."""
    return await queries.list_notices(db, company_id, MAX_NOTICES)
