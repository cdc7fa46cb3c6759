"""Tells owners by mail that an endpoint was suspended."""

import asyncio

import structlog

from sapa.context import AppContext
from sapa.people import mail
from sapa.people.actions import list_owners
from sapa.people.types import MailRecipient
from sapa.webhooks.notices import queries
from sapa.webhooks.notices.mail_texts import TEXTS
from sapa.webhooks.notices.types import DueNotice, OwnerNotice
from sapa.webhooks.sender import parse_url
from sapa.work.loops import repeat_when_due

BATCH = 50
PAUSE_SECONDS = 1.0
RETRY_SECONDS = 5 * 60
MAX_TRIES = 12

log = structlog.get_logger()


async def mail_owners(context: AppContext, stopping: asyncio.Event) -> None:
    async def step() -> bool:
        async with context.database.connection() as db:
            due = await queries.list_due(db, BATCH)
        for notice in due:
            await _mail(context, notice)
        return len(due) >= BATCH

    await repeat_when_due(context.database, queries.MAILS, step, stopping, pause=PAUSE_SECONDS)


async def _mail(context: AppContext, due: DueNotice) -> None:
    """One mail to each owner. It is tried again later only if no owner could be reached."""
    async with context.database.transaction() as tx:
        notice = await queries.claim(tx, due, MAX_TRIES, RETRY_SECONDS)
        owners = await list_owners(tx, due.company_id)
    if notice is None:
        return
    if not mail.is_set_up(context):
        log.warning("owners not told of a suspended webhook: SAPA_SMTP_URL is not set", webhook_id=notice.endpoint_id)
    sent = [await _send(context, notice, owner) for owner in owners] if notice.url and mail.is_set_up(context) else []
    if any(sent) or not sent:
        async with context.database.transaction() as tx:
            await queries.settle(tx, due)


async def _send(context: AppContext, notice: OwnerNotice, owner: MailRecipient) -> bool:
    try:
        await mail.send_notice(context, build_mail(context.settings.server.address, notice, owner))
    except mail.NotMailed as error:
        log.warning("owner not told of a suspended webhook", user_id=owner.user_id, reason=str(error))
        return False
    return True


def build_mail(address: str, notice: OwnerNotice, owner: MailRecipient) -> mail.NoticeMail:
    """Of the URL only the origin: its path may hold a secret."""
    texts = TEXTS[owner.language]
    body = texts.body.format(
        name=owner.name,
        organisation=owner.organisation,
        origin=parse_url(notice.url or "").origin(),
        environment=notice.environment,
        reason=notice.message,
        next=texts.resumes if notice.auto_resume else texts.waits,
        link=f"{address}/console/{notice.environment}/webhooks/{notice.endpoint_id}",
    )
    return mail.NoticeMail(owner.email, texts.subject.format(organisation=owner.organisation), body, owner.language)
