"""Endpoints for templates."""

from typing import Any

from msgspec import Struct

from sapa.access.types import Scope
from sapa.db.listing import contains
from sapa.db.pool import Tx
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import Invalid, NotFound
from sapa.http.outbound_call import OutboundCall
from sapa.http.responses import Page, build_page
from sapa.messaging.channels.abilities import ChannelTemplate, NewTemplate
from sapa.messaging.channels.interface import BadAccount, SendRefusal
from sapa.messaging.channels.template_content import TemplateContent
from sapa.messaging.connections.types import ChannelNotConnected
from sapa.messaging.templates import (
    actions,
    queries,
    sync,
    text,
)
from sapa.messaging.templates.filling import fill_template
from sapa.messaging.templates.sync import TemplateAccount
from sapa.messaging.templates.types import (
    Preview,
    PreviewIn,
    SyncResult,
    Template,
    TemplateExists,
    TemplateId,
    TemplateIn,
    TemplateNotChanged,
    TemplateNotDeleted,
    TemplateOnChannel,
    TemplateParamsMismatch,
    TemplatePatch,
    TemplatesNotRead,
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


@routes.post("", scope=Scope.MESSAGES_WRITE, raises=[TemplateExists])
async def create_template(call: OutboundCall, body: TemplateIn) -> Template:
    """Create a template.

    It is submitted to the channel that reviews templates, if one is connected, and its status follows that channel's
    decision. In a test environment a simulator decides at once. Channels without a review send it as text.
    """
    account = await _find_template_account(call)

    async def intend(tx: Tx) -> Template:
        return await actions.create(tx, call.company, body)

    template = await call.intend(intend)
    answer = await sync.submit(account, template) if account else None

    async def conclude(tx: Tx) -> Template:
        return await sync.settle(tx, call.company, account, template, answer) if account else template

    return await call.conclude(conclude)


@routes.post("/sync", scope=Scope.MESSAGES_WRITE, status=200, raises=[ChannelNotConnected, TemplatesNotRead])
async def sync_templates(call: OutboundCall) -> SyncResult:
    """Synchronise the templates with the channel now.

    This happens without a call: within five minutes of what the channel reports, every five minutes while it reviews a
    template, and once a day. Templates that were created at the channel appear, templates that were deleted there are
    removed, and templates that the channel does not have yet are submitted.
    """
    try:
        found = await sync.synchronise_company(call.context, call.company.id)
    except (NotSent, Unclear, BadAccount) as error:
        raise TemplatesNotRead(f"The channel did not list its templates: {error}") from None
    if found is None:
        raise ChannelNotConnected("No channel that reviews templates is connected.")
    return SyncResult(found)


@routes.get("/{id}", scope=Scope.MESSAGES_READ, raises=[NotFound])
async def get_template(call: Call, id: TemplateId) -> Template:
    """Get one template."""
    return await queries.get_template(call.db, call.company.id, id)


@routes.put("/{id}", scope=Scope.MESSAGES_WRITE, raises=[NotFound, TemplateOnChannel, TemplateNotChanged])
async def update_template(call: OutboundCall, id: TemplateId, body: TemplatePatch) -> Template:
    """Update a template.

    Absent fields keep their values, null clears a field. The channel reviews the change. It takes changes of templates
    that are approved, rejected or paused, and an approved template keeps its category.
    """
    account = await _find_template_account(call)

    async def intend(tx: Tx) -> TemplateChange:
        """What the channel has changes there first."""
        template, content = await actions.prepare_change(tx, call.company, id, body)
        provider_id = await queries.find_provider_id(tx, call.company.id, id)
        if provider_id is None:
            template = await actions.change(tx, call.company, id, content)
        return TemplateChange(template, content, provider_id)

    change = await call.intend(intend, lambda change: change.template)
    answer = await _submit_change(account, change)

    async def conclude(tx: Tx) -> Template:
        template = change.template
        if change.provider_id is not None:
            template = await actions.change(tx, call.company, id, change.content)
        return await sync.settle(tx, call.company, account, template, answer) if account else template

    return await call.conclude(conclude)


@routes.delete("/{id}", scope=Scope.MESSAGES_WRITE, raises=[NotFound, TemplateNotDeleted])
async def delete_template(call: OutboundCall, id: TemplateId) -> None:
    """Delete a template.

    It is deleted at the channel, too; other languages of the same name stay.
    """

    async def intend(tx: Tx) -> tuple[Template, str | None]:
        template = await queries.get_template(tx, call.company.id, id)
        return template, await queries.find_provider_id(tx, call.company.id, id)

    template, provider_id = await call.intend(intend, lambda found: found[0])
    if provider_id and (account := await _find_template_account(call)):
        await _delete_there(account, template.name, provider_id)

    async def conclude(tx: Tx) -> None:
        await actions.delete(tx, call.company, id)

    await call.conclude(conclude)


@routes.post("/{id}/preview", scope=Scope.MESSAGES_READ, status=200, raises=[NotFound, TemplateParamsMismatch])
async def preview_template(call: Call, id: TemplateId, body: PreviewIn) -> Preview:
    """Preview a template with its parameters filled in."""
    template = await queries.get_template(call.db, call.company.id, id)
    content = text.parse_content(template)
    return text.preview(fill_template(template.name, content, body.params, body.components, body.media_url))


class TemplateChange(Struct, frozen=True):
    """A change that the channel has to take first, if it has the template."""

    template: Template
    content: TemplateContent
    provider_id: str | None


async def _find_template_account(call: OutboundCall) -> TemplateAccount | None:
    async with call.context.database.connection() as db:
        return await sync.find_template_account(call.context, db, call.company)


async def _submit_change(
    account: TemplateAccount | None, change: TemplateChange
) -> ChannelTemplate | SendRefusal | None:
    """Raises if the channel has the template and does not take its change."""
    if change.provider_id is None:
        return await sync.submit(account, change.template) if account else None
    if account is None:
        raise TemplateNotChanged("The channel that has the template is not connected.")
    new = NewTemplate(change.template.name, change.template.language, change.content)
    try:
        answer = await account.channel.edit_template(account.connection, change.provider_id, new)
    except (NotSent, Unclear, BadAccount) as error:
        raise TemplateNotChanged(account.connection.mask(f"The channel did not answer: {error}")) from None
    if isinstance(answer, SendRefusal):
        reason = account.connection.mask(answer.reason)
        raise TemplateNotChanged(f"The channel refused: {reason} (code {answer.code})")
    return answer


async def _delete_there(account: TemplateAccount, name: str, provider_id: str) -> None:
    try:
        refusal = await account.channel.delete_template(account.connection, name, provider_id)
    except (NotSent, Unclear, BadAccount) as error:
        raise TemplateNotDeleted(account.connection.mask(f"The channel did not answer: {error}")) from None
    if refusal is not None:
        raise TemplateNotDeleted(
            account.connection.mask(f"The channel refused: {refusal.reason} (code {refusal.code})")
        )


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
