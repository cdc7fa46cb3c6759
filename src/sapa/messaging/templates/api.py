"""Endpoints for templates."""

from typing import Any

from sapa.access.types import Scope
from sapa.db.listing import contains
from sapa.db.pool import Tx
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import Invalid, NotFound
from sapa.http.outbound_call import OutboundCall
from sapa.http.responses import Page, build_page
from sapa.messaging.channels.abilities import ChannelTemplate
from sapa.messaging.channels.interface import BadAccount, SendRefusal
from sapa.messaging.messages.types import ChannelUnsupported
from sapa.messaging.templates import (
    actions,
    queries,
    sync,
    text,
)
from sapa.messaging.templates.sync import TemplateAccount
from sapa.messaging.templates.types import (
    Preview,
    PreviewIn,
    Template,
    TemplateExists,
    TemplateId,
    TemplateIn,
    TemplateNotDeleted,
    TemplateOnChannel,
    TemplateParamsMismatch,
    TemplatePatch,
    TemplatesQuery,
)
from sapa.outbound.client import NotSent, Unclear

routes = Routes(
    "/templates",
    base=Base.MESSAGING,
    tag="Templates",
    about="Texts with parameters, and whether the channels approved them.",
)


@routes.get("", scope=Scope.MESSAGES_READ)
async def list_templates(call: Call, query: TemplatesQuery) -> Page[Template]:
    """List templates.

    The newest first.
    """
    templates, total = await queries.list_templates(
        call.db, call.company.id, _filters(query), query.limit, query.offset
    )
    return build_page(templates, query.page, query.limit, total)


@routes.post("", scope=Scope.MESSAGES_WRITE, raises=[TemplateExists, ChannelUnsupported])
async def create_template(call: OutboundCall, body: TemplateIn) -> Template:
    """Create a template.

    In a test environment it is approved at once. In production it is submitted to the channel that approves templates,
    if one is connected, and its status follows that channel's decision. Channels without approval send it as text.
    """
    account = await _find_template_account(call)
    if account:
        sync.check_header(actions.parse_header(body.header))

    async def intend(tx: Tx) -> Template:
        return await actions.create(tx, call.company, body)

    template = await call.intend(intend)
    response: ChannelTemplate | SendRefusal | None = await sync.submit(account, template) if account else None

    async def conclude(tx: Tx) -> Template:
        return await sync.settle(tx, call.company, template, response)

    return await call.conclude(conclude)


@routes.get("/{id}", scope=Scope.MESSAGES_READ, raises=[NotFound])
async def get_template(call: Call, id: TemplateId) -> Template:
    """Get one template."""
    return await queries.get_template(call.db, call.company.id, id)


@routes.put("/{id}", scope=Scope.MESSAGES_WRITE, raises=[NotFound, TemplateOnChannel])
async def update_template(call: Call, id: TemplateId, body: TemplatePatch) -> Template:
    """Update a template.

    Absent fields keep their values, null clears a field. A template that was submitted to a channel cannot be changed.
    """
    return await actions.update(call.db, call.company, id, body)


@routes.delete("/{id}", scope=Scope.MESSAGES_WRITE, raises=[NotFound, TemplateNotDeleted])
async def delete_template(call: OutboundCall, id: TemplateId) -> None:
    """Delete a template.

    Deleting its last language also deletes it at the channel.
    """

    async def intend(tx: Tx) -> str | None:
        template = await queries.get_template(tx, call.company.id, id)
        is_last = len(await queries.list_by_name(tx, call.company.id, template.name)) == 1
        is_there = await queries.find_provider_id(tx, call.company.id, id) is not None
        return template.name if is_last and is_there else None

    name = await call.intend(intend)
    if name and (account := await _find_template_account(call)):
        await _delete_there(account, name)

    async def conclude(tx: Tx) -> None:
        await actions.delete(tx, call.company, id)

    await call.conclude(conclude)


@routes.post("/{id}/preview", scope=Scope.MESSAGES_READ, status=200, raises=[NotFound, TemplateParamsMismatch])
async def preview_template(call: Call, id: TemplateId, body: PreviewIn) -> Preview:
    """Preview a template with its parameters filled in."""
    template = await queries.get_template(call.db, call.company.id, id)
    text.check_params(template, body.params)
    return text.preview(template, body.params)


async def _find_template_account(call: OutboundCall) -> TemplateAccount | None:
    async with call.context.database.connection() as db:
        return await sync.find_template_account(call.context, db, call.company)


async def _delete_there(account: TemplateAccount, name: str) -> None:
    try:
        refusal = await account.channel.delete_template(account.connection, name)
    except (NotSent, Unclear, BadAccount) as error:
        raise TemplateNotDeleted(f"The channel did not answer: {error}") from None
    if refusal is not None:
        raise TemplateNotDeleted(f"The channel refused: {refusal.reason} (code {refusal.code})")


def _filters(query: TemplatesQuery) -> dict[str, Any]:
    if query.search is not None and not query.search.strip():
        raise Invalid.field("search", "must not be blank")
    filters = {
        "search": query.search and contains(query.search),
        "language": query.language,
        "source": query.source,
        "status": query.status,
    }
    return {name: value for name, value in filters.items() if value is not None}
