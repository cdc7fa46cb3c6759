"""Tells people by mail what waits, when they are away from the console."""

import asyncio
from collections.abc import Mapping

import structlog
from msgspec.structs import asdict

from sapa.context import AppContext
from sapa.http.query_string import parse_date_time
from sapa.people import mail
from sapa.people.profile import actions as profile
from sapa.people.profile.types import AwayMember
from sapa.support.away_mail import queries
from sapa.support.away_mail.mail_texts import TEXTS
from sapa.work.loops import keep_running

AWAY_SECONDS = 10 * 60.0
PAUSE_SECONDS = 60 * 60.0
"""Between two mails to a person."""
LOOK_SECONDS = 60.0
BATCH = 100

log = structlog.get_logger()


async def mail_away(context: AppContext, stopping: asyncio.Event) -> None:
    async def step() -> None:
        if mail.is_set_up(context):
            await mail_waiting(context)

    await keep_running("mail to people who are away", step, stopping, pause=LOOK_SECONDS, every=LOOK_SECONDS)


async def mail_waiting(context: AppContext, away_seconds: float = AWAY_SECONDS) -> None:
    """One round over those who are away."""
    async with context.database.connection() as db:
        away = await profile.list_away(db, away_seconds, PAUSE_SECONDS, BATCH)
    for member in away:
        await _mail(context, member)


async def _mail(context: AppContext, member: AwayMember) -> None:
    alerts = profile.read_alerts(member.alerts) if member.alerts else profile.DEFAULTS
    async with context.database.connection() as db:
        found = await queries.count_waiting(db, member.company_id, member.user_id, parse_date_time(member.since))
    waiting = {kind: count for kind, count in asdict(found).items() if count and kind in alerts.kinds}
    if not waiting:
        return
    async with context.database.transaction() as tx:
        if not await profile.mark_alerted(tx, member, PAUSE_SECONDS):
            return
    try:
        await mail.send_notice(context, build_mail(context.settings.server.address, member, waiting))
    except mail.NotMailed as error:
        log.warning("person not told of waiting customers", user_id=member.user_id, reason=str(error))


def build_mail(address: str, member: AwayMember, waiting: Mapping[str, int]) -> mail.NoticeMail:
    """`waiting` has the number of each kind."""
    texts = TEXTS[member.language]
    lines = [
        f"- {(line.one if waiting[kind] == 1 else line.several).format(n=waiting[kind])}:\n"
        f"  {address}/console/live{line.path}"
        for kind, line in texts.lines.items()
        if kind in waiting
    ]
    body = texts.body.format(
        name=member.name,
        organisation=member.organisation,
        lines="\n".join(lines),
        settings=f"{address}/console/profile",
    )
    subject = texts.subject.format(organisation=member.organisation, count=sum(waiting.values()))
    return mail.NoticeMail(member.email, subject, body, member.language)
