"""Submits templates to the channel that reviews them, and synchronises them with it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime

import asyncpg
import structlog
from msgspec import Struct

from sapa.access import actions as access
from sapa.context import AppContext
from sapa.db.connection import DatabaseAway
from sapa.db.pool import Connection, Tx
from sapa.messaging.channels.abilities import ChannelTemplate, NewTemplate, TemplateStore
from sapa.messaging.channels.interface import (
    BadAccount,
    ChannelAccount,
    SendRefusal,
    Source,
)
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.connections.environment import get_environment
from sapa.messaging.templates import actions, queries
from sapa.messaging.templates.text import parse_content
from sapa.messaging.templates.types import Template
from sapa.outbound.client import NotSent, Unclear
from sapa.values.company import Company
from sapa.values.instants import truncate_to_milliseconds
from sapa.work import leases
from sapa.work.loops import repeat

LEASE = "templates"
LEASE_SECONDS = 120.0
ROUND_SECONDS = 300.0
NEXT_SECONDS = 24 * 60 * 60.0
"""Until an account is read that neither waits for a decision nor was asked for."""
RETRY_SECONDS = 60 * 60.0
"""Until an account is read again that could not be read."""
PAGE_OF_COMPANIES = 1_000
MAX_SUBMITTED = 50

APPROVING_SOURCES: Sequence[Source] = [
    source for source, channel in CHANNELS.items() if isinstance(channel, TemplateStore)
]

log = structlog.get_logger()


class TemplateAccount(Struct, frozen=True):
    """A company's account with the channel that reviews its templates."""

    channel: TemplateStore
    connection: ChannelAccount

    @property
    def owner(self) -> str:
        return self.connection.account[self.channel.template_owner_field]


async def find_template_account(context: AppContext, db: Connection, company: Company) -> TemplateAccount | None:
    """None if no connected channel reviews templates."""
    for source in APPROVING_SOURCES:
        connected = await get_environment(company).accounts.find_by_source(context, db, company, source)
        if connected is not None and isinstance(connected.channel, TemplateStore):
            return TemplateAccount(connected.channel, connected.connection)
    return None


async def submit(account: TemplateAccount, template: Template) -> ChannelTemplate | SendRefusal | None:
    """The channel's answer; None if the outcome is unknown, which the next round resolves."""
    new = NewTemplate(template.name, template.language, parse_content(template))
    try:
        return await account.channel.submit_template(account.connection, new)
    except (NotSent, Unclear, BadAccount) as error:
        log.warning(
            "template not submitted",
            company_id=account.connection.company.id,
            template=template.name,
            reason=account.connection.mask(str(error)),
        )
        return None


async def settle(
    tx: Tx,
    company: Company,
    account: TemplateAccount,
    template: Template,
    answer: ChannelTemplate | SendRefusal | None,
) -> Template:
    """Stores the channel's answer to a submitted template."""
    if answer is None:
        return template
    if isinstance(answer, SendRefusal):
        reason = account.connection.mask(answer.reason)
        return await actions.reject(tx, company, template, f"{reason} (code {answer.code})")
    return await actions.settle(tx, company, template, account.owner, answer)


async def synchronise(context: AppContext, stopping: asyncio.Event) -> None:
    """Worker service: reads the templates and decisions of the companies that wait for some, and once a day those of
    each company, from their channels."""
    holder = leases.new_holder()

    async def step() -> None:
        async for company_id in list_companies(context):
            if stopping.is_set() or not await _take_lease(context, holder):
                return
            await _try_synchronise(context, company_id)

    await repeat(step, stopping, every=ROUND_SECONDS)
    async with context.database.connection() as db:
        await leases.release_all(db, holder)


async def list_companies(context: AppContext, page_size: int = PAGE_OF_COMPANIES) -> AsyncIterator[int]:
    """Those that have templates to synchronise, page by page."""
    after = 0
    while True:
        async with context.database.connection() as db:
            page = await queries.list_owners(db, APPROVING_SOURCES, after, page_size)
        for owner in page:
            yield owner.company_id
        if len(page) < page_size:
            return
        after = page[-1].company_id


async def _take_lease(context: AppContext, holder: str) -> bool:
    """A round may outlast the lease, and a template that two workers submit would be refused."""
    async with context.database.connection() as db:
        return await leases.take(db, LEASE, holder, LEASE_SECONDS) is not None


async def _try_synchronise(context: AppContext, company_id: int) -> None:
    """An error at one company's channel does not block the other companies."""
    try:
        await synchronise_company(context, company_id)
        return
    except DatabaseAway:
        raise
    except (NotSent, Unclear, BadAccount) as error:
        log.warning("templates not read", company_id=company_id, reason=str(error))
    except Exception:
        log.exception("templates not synchronised", company_id=company_id)
    async with context.database.connection() as db:
        since = (await access.read_clock(db, company_id)).real
        await queries.postpone(db, company_id, since, RETRY_SECONDS)


async def synchronise_company(context: AppContext, company_id: int) -> int | None:
    """The number of templates at the channel; None without a channel that reviews them. Raises NotSent, Unclear or
    BadAccount if the channel does not list them."""
    async with context.database.connection() as db:
        company = await access.get_company(db, company_id)
        account = await find_template_account(context, db, company)
        since = truncate_to_milliseconds((await access.read_clock(db, company_id)).real)
    if account is None:
        return None
    try:
        found = await account.channel.list_templates(account.connection)
    except (NotSent, Unclear, BadAccount) as error:
        raise type(error)(account.connection.mask(str(error))) from None
    for template in found:
        await _adopt(context, company, account.owner, template, since)
    async with context.database.transaction() as tx:
        await actions.drop_missing(tx, company, account.owner, found, since)
    await _submit_missing(context, company, account)
    async with context.database.connection() as db:
        await queries.postpone(db, company_id, since, NEXT_SECONDS)
    return len(found)


async def _adopt(context: AppContext, company: Company, owner: str, template: ChannelTemplate, since: datetime) -> None:
    """One transaction per template, so that a failing one does not block the others."""
    try:
        await context.database.transact(
            lambda tx: actions.adopt(tx, company, owner, template, since), (asyncpg.UniqueViolationError,)
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
        answer = await submit(account, template)
        async with context.database.transaction() as tx:
            await settle(tx, company, account, template, answer)
