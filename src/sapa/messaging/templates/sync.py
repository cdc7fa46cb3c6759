"""Submits templates to the channel that reviews them, and synchronises their status."""

import asyncio
from collections.abc import Sequence

import asyncpg
import msgspec
import structlog
from msgspec import Struct

from sapa.access import actions as access
from sapa.context import AppContext
from sapa.db.connection import DatabaseAway
from sapa.db.pool import Connection
from sapa.messaging.channels.abilities import ChannelTemplate, NewTemplate, TemplateStore
from sapa.messaging.channels.interface import (
    BadAccount,
    ChannelAccount,
    SendRefusal,
    Source,
)
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.connections.environment import get_environment
from sapa.messaging.messages.types import ChannelUnsupported
from sapa.messaging.templates import actions, queries
from sapa.messaging.templates.text import list_placeholders, parse_buttons, parse_header
from sapa.messaging.templates.types import Header, Template
from sapa.outbound.client import NotSent, Unclear
from sapa.values.company import Company
from sapa.work import leases
from sapa.work.loops import repeat

LEASE = "templates"
LEASE_SECONDS = 120.0
ROUND_SECONDS = 300.0
MAX_COMPANIES = 1_000
MAX_SUBMITTED = 50

APPROVING_SOURCES: Sequence[Source] = [
    source for source, channel in CHANNELS.items() if isinstance(channel, TemplateStore)
]

log = structlog.get_logger()


class TemplateAccount(Struct, frozen=True):
    """A company's account with the channel that reviews its templates."""

    channel: TemplateStore
    connection: ChannelAccount


async def find_template_account(context: AppContext, db: Connection, company: Company) -> TemplateAccount | None:
    """None if the company's templates need no review."""
    if not get_environment(company).has_template_review:
        return None
    for source in APPROVING_SOURCES:
        connected = await get_environment(company).accounts.find_by_source(context, db, company, source)
        if connected is not None and isinstance(connected.channel, TemplateStore):
            return TemplateAccount(connected.channel, connected.connection)
    return None


def check_header(header: Header | None) -> None:
    """Raises for a header that can only be created at the channel."""
    if header is not None and header.type != "text":
        raise ChannelUnsupported(
            "Templates with a media header cannot be created here. Create it at the channel; it then appears here."
        )


async def submit(account: TemplateAccount, template: Template) -> ChannelTemplate | SendRefusal | None:
    """The channel's response; None if the outcome is unknown, which the next round resolves."""
    header = parse_header(template)
    new = NewTemplate(
        template.name,
        template.language,
        template.category,
        template.body,
        [f"text {number}" for number in list_placeholders(template.body)],
        header.text if header else None,
        template.footer,
        [msgspec.to_builtins(_build_button(button)) for button in parse_buttons(template)],
    )
    try:
        return await account.channel.submit_template(account.connection, new)
    except (NotSent, Unclear, BadAccount) as error:
        log.warning(
            "template not submitted",
            company_id=account.connection.company.id,
            template=template.name,
            reason=str(error),
        )
        return None


def _build_button(button: object) -> dict[str, object]:
    """The button in the channel's format, without empty fields."""
    names = {"type": "type", "text": "text", "url": "url", "phone_number": "phone_number"}
    return {status_name: value for name, status_name in names.items() if (value := getattr(button, name)) is not None}


async def synchronise(context: AppContext, stopping: asyncio.Event) -> None:
    """Worker service: reads each company's templates and decisions from its channel every few minutes."""
    holder = leases.new_holder()

    async def step() -> None:
        async with context.database.connection() as db:
            is_ours = await leases.take(db, LEASE, holder, LEASE_SECONDS) is not None
            owners = await queries.list_owners(db, APPROVING_SOURCES, MAX_COMPANIES) if is_ours else []
        for owner in owners:
            if stopping.is_set() or not await _renew_lease(context, holder):
                return
            await _try_synchronise(context, owner.company_id)

    await repeat(step, stopping, every=ROUND_SECONDS)
    async with context.database.connection() as db:
        await leases.release_all(db, holder)


async def _renew_lease(context: AppContext, holder: str) -> bool:
    """A round may outlast the lease, and a template that two workers submit would be refused."""
    async with context.database.connection() as db:
        return await leases.take(db, LEASE, holder, LEASE_SECONDS) is not None


async def _try_synchronise(context: AppContext, company_id: int) -> None:
    """An error at one company's channel does not block the other companies."""
    try:
        await synchronise_company(context, company_id)
    except DatabaseAway:
        raise
    except Exception:
        log.exception("templates not synchronised", company_id=company_id)


async def synchronise_company(context: AppContext, company_id: int) -> None:
    async with context.database.connection() as db:
        company = await access.get_company(db, company_id)
        account = await find_template_account(context, db, company)
    if account is None:
        return
    try:
        found = await account.channel.list_templates(account.connection)
    except (NotSent, Unclear, BadAccount) as error:
        log.warning("templates not read", company_id=company_id, reason=str(error))
        return
    for template in found:
        await _adopt(context, company, template)
    await _submit_missing(context, company, account)


async def _adopt(context: AppContext, company: Company, template: ChannelTemplate) -> None:
    """One transaction per template, so that a failing one does not block the others."""
    try:
        await context.database.transact(
            lambda tx: actions.adopt(tx, company, template), (asyncpg.UniqueViolationError,)
        )
    except DatabaseAway:
        raise
    except Exception:
        log.exception("template not adopted", company_id=company.id, template=template.name)


async def _submit_missing(context: AppContext, company: Company, account: TemplateAccount) -> None:
    """Submits templates that the channel does not have."""
    async with context.database.connection() as db:
        waiting = await queries.list_unsubmitted(db, company.id, MAX_SUBMITTED)
    for template in waiting:
        header = parse_header(template)
        if header is None or header.type == "text":
            response = await submit(account, template)
            async with context.database.transaction() as tx:
                await settle(tx, company, template, response)


async def settle(
    tx: Connection, company: Company, template: Template, response: ChannelTemplate | SendRefusal | None
) -> Template:
    """Stores the channel's response to a submitted template."""
    if response is None:
        return template
    reason: str | None
    provider_id: str | None
    if isinstance(response, SendRefusal):
        status_name, reason, provider_id = "REJECTED", f"{response.reason} (code {response.code})", None
    else:
        status_name, reason, provider_id = response.status.upper(), response.reason, response.id or response.name
    status = actions.APPROVALS.get(status_name, "PENDING")
    decided = await queries.decide(tx, company.id, template.name, template.language, status, reason, provider_id)
    return decided or template
