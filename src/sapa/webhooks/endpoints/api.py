"""How webhook endpoints are managed over HTTP."""

from msgspec.structs import asdict

from sapa.access import actions as access
from sapa.access.types import Scope
from sapa.db.pool import Tx
from sapa.http.endpoints import Base, Call, Routes, ToolTraits
from sapa.http.outbound_call import OutboundCall
from sapa.http.query_string import PageQuery
from sapa.http.responses import Page, build_page
from sapa.webhooks.endpoints import actions, test_event
from sapa.webhooks.endpoints.test_event import WebhookTestResult
from sapa.webhooks.types import (
    EndpointActive,
    EndpointId,
    EndpointNotFound,
    NewSecret,
    NewWebhookEndpoint,
    OverlapRuns,
    WebhookEndpoint,
    WebhookEndpointIn,
    WebhookEndpointPatch,
    WebhookLimit,
    WebhookResumeIn,
    WebhookSecretIn,
    WebhookTestIn,
)

routes = Routes(
    "/webhook-endpoints",
    base=Base.CUSTOMER,
    tag="Webhook endpoints",
    about="Where the company's events are delivered, and what became of each delivery.",
    resource="webhooks",
)


@routes.get("", scope=Scope.WEBHOOKS_READ)
async def list_webhook_endpoints(call: Call, query: PageQuery) -> Page[WebhookEndpoint]:
    """List the webhook endpoints, the newest first, without their secrets."""
    found = (await actions.list_endpoints(call.db, call.context.vault, call.company.id))[::-1]
    return build_page(found[query.offset : query.offset + query.limit], query.page, query.limit, len(found))


@routes.post(
    "",
    scope=Scope.WEBHOOKS_WRITE,
    raises=[WebhookLimit],
    tool=ToolTraits(hidden="Its response has a secret, which a model must not read."),
)
async def create_webhook_endpoint(call: Call, body: WebhookEndpointIn) -> NewWebhookEndpoint:
    """Register a webhook endpoint.

    It gets the events from now on. Its signing secret is shown only in this response. A company's environment has at
    most 10 endpoints.
    """
    context = call.context
    new = await actions.create(call.db, context.vault, context.settings.webhooks, call.company.id, body)
    await access.record_change(call.db, call.key, call.address, "webhook.created", new.endpoint.url)
    return _build_new(new)


@routes.get("/{id}", scope=Scope.WEBHOOKS_READ, raises=[EndpointNotFound])
async def get_webhook_endpoint(call: Call, id: EndpointId) -> WebhookEndpoint:
    """Get one webhook endpoint, without its secret."""
    return await actions.get(call.db, call.context.vault, call.company.id, id)


@routes.put("/{id}", scope=Scope.WEBHOOKS_WRITE, raises=[EndpointNotFound])
async def update_webhook_endpoint(call: Call, id: EndpointId, body: WebhookEndpointPatch) -> WebhookEndpoint:
    """Update a webhook endpoint.

    A field that you leave out keeps its value. Queued deliveries use the new values, too. If the URL gets another
    origin, send the custom headers again: they may hold passwords that are not meant for the new receiver.
    """
    context = call.context
    endpoint = await actions.update(call.db, context.vault, context.settings.webhooks, call.company.id, id, body)
    await access.record_change(call.db, call.key, call.address, "webhook.changed", endpoint.url)
    return endpoint


@routes.delete("/{id}", scope=Scope.WEBHOOKS_DELETE, raises=[EndpointNotFound])
async def delete_webhook_endpoint(call: OutboundCall, id: EndpointId) -> None:
    """Delete a webhook endpoint and its queued deliveries.

    The log of its deliveries stays. Many queued deliveries are deleted in parts: if the call is interrupted, repeat it.
    """
    await actions.delete_queued(call.context.database, call.company.id, id)

    async def delete(tx: Tx) -> None:
        endpoint = await actions.get(tx, call.context.vault, call.company.id, id)
        await actions.delete(tx, call.company.id, id)
        await access.record_change(tx, call.key, call.address, "webhook.deleted", endpoint.url)

    await call.commit(delete)


@routes.post(
    "/{id}/rotate-secret",
    scope=Scope.WEBHOOKS_WRITE,
    status=200,
    raises=[EndpointNotFound, OverlapRuns],
    tool=ToolTraits(hidden="Its response has a secret, which a model must not read."),
)
async def rotate_webhook_secret(
    call: Call, id: EndpointId, body: WebhookSecretIn = WebhookSecretIn()
) -> NewWebhookEndpoint:
    """Create a new signing secret.

    It is shown only in this response. For 24 hours deliveries are signed with the new and the previous secret.
    """
    new = await actions.rotate(call.db, call.context.vault, call.company.id, id, body.end_overlap)
    await access.record_change(call.db, call.key, call.address, "webhook.rotated", new.endpoint.url)
    return _build_new(new)


@routes.post(
    "/{id}/pause",
    scope=Scope.WEBHOOKS_WRITE,
    status=200,
    raises=[EndpointNotFound],
    tool=ToolTraits(is_destructive=False),
)
async def pause_webhook_endpoint(call: Call, id: EndpointId) -> WebhookEndpoint:
    """Hold an endpoint's deliveries until it is resumed. Pausing it again changes nothing."""
    endpoint, is_new = await actions.pause(call.db, call.context.vault, call.company.id, id)
    if is_new:
        await access.record_change(call.db, call.key, call.address, "webhook.paused", endpoint.url)
    return endpoint


@routes.post(
    "/{id}/resume",
    scope=Scope.WEBHOOKS_WRITE,
    status=200,
    raises=[EndpointNotFound, EndpointActive],
    tool=ToolTraits(is_destructive=False),
)
async def resume_webhook_endpoint(
    call: Call, id: EndpointId, body: WebhookResumeIn = WebhookResumeIn()
) -> WebhookEndpoint:
    """Resume a paused or suspended endpoint. `missed` says which of the events that it missed it gets."""
    endpoint = await actions.resume(call.db, call.context.vault, call.company.id, id, body.missed)
    await access.record_change(call.db, call.key, call.address, "webhook.resumed", endpoint.url)
    return endpoint


@routes.post(
    "/{id}/test",
    scope=Scope.WEBHOOKS_WRITE,
    status=200,
    raises=[EndpointNotFound],
    tool=ToolTraits(is_destructive=False),
)
async def send_test_webhook_event(
    call: OutboundCall, id: EndpointId, body: WebhookTestIn = WebhookTestIn()
) -> WebhookTestResult:
    """Send a signed sample event now, and get the receiver's response.

    The sample is not stored and does not count as a failure.
    """
    context = call.context
    async with context.database.connection() as db:
        target, message = await test_event.prepare_test_event(db, context.vault, call.company.id, id, body.event)
    return test_event.build_result(
        message, await test_event.send_test_event(context.settings.webhooks, target, message)
    )


def _build_new(new: NewSecret) -> NewWebhookEndpoint:
    return NewWebhookEndpoint(**asdict(new.endpoint), secret=new.secret)
