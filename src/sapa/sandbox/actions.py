"""Controls of a test environment."""

from datetime import timedelta

from sapa.access import actions as access
from sapa.access.actions import read_clock
from sapa.context import AppContext
from sapa.db.pool import Tx
from sapa.http.errors import Invalid
from sapa.messaging.channels.interface import Source
from sapa.messaging.channels.registry import CHANNELS, find_source
from sapa.messaging.sending.preflight import parse_recipient
from sapa.sandbox.callbacks import schedule
from sapa.sandbox.channels.accounts import build_account
from sapa.sandbox.channels.inbound import SimulatedInbound
from sapa.sandbox.channels.people import record_inbound
from sapa.sandbox.channels.simulator import ChannelSimulator
from sapa.sandbox.channels.simulators import SIMULATORS
from sapa.sandbox.inbound_contents import ALONE, BESIDE
from sapa.sandbox.types import (
    Clock,
    PlannedCallback,
    SandboxInbound,
    SandboxInboundIn,
    SandboxStatus,
    SandboxStatusIn,
    TestKeyRequired,
)
from sapa.values.company import Company
from sapa.values.instants import format_instant


def refuse_live(company: Company) -> None:
    if not company.is_test:
        raise TestKeyRequired


async def simulate_inbound(context: AppContext, tx: Tx, company: Company, body: SandboxInboundIn) -> SandboxInbound:
    """Schedules the callback that the channel would send."""
    source, sender = _parse_sender(company, body)
    simulator = SIMULATORS[source]
    _check(simulator, body)
    account = build_account(context, company.id, source)
    inbound = SimulatedInbound(
        sender=sender,
        message_id=simulator.build_message_id(),
        at=(await read_clock(tx, company.id)).now,
        text=body.text,
        choice=("button", body.button.id, body.button.title) if body.button else None,
        media=body.media,
        quoted=body.quoted,
        name=body.name,
        is_echo=body.echo,
        subject=body.subject,
        contents=body,
    )
    post = simulator.build_inbound(account, inbound)
    is_message = body.preference is None and body.error is None and not body.echo
    if is_message:
        await record_inbound(tx, company.id, source, sender, inbound.at)
    await schedule(tx, company.id, account.hook, [PlannedCallback(post.headers, post.body, 0)])
    return SandboxInbound(source, sender, inbound.message_id, post.body.decode("utf-8", "replace"))


def _parse_sender(company: Company, body: SandboxInboundIn) -> tuple[Source, str]:
    source = find_source(body.source)
    if source is None:
        raise Invalid.field("source", f"must be one of {', '.join(Source)}")
    kinds = CHANNELS[source].capabilities.identities
    try:
        return source, parse_recipient(body.from_, None, company, kinds).value
    except Invalid as error:
        raise Invalid.field("from", (error.details or [])[0].message) from None


def _check(simulator: ChannelSimulator, body: SandboxInboundIn) -> None:
    used = [name for name in (*ALONE, *BESIDE) if getattr(body, name)]
    for name in used:
        if name not in simulator.contents:
            able = [source for source in Source if name in SIMULATORS[source].contents]
            raise Invalid.field(_show(name), f"must be absent on this channel; only {', '.join(able)} can send it")
    alone = [name for name in used if name in ALONE]
    if len(alone) > 1 or (alone and (body.text is not None or body.button is not None or body.media is not None)):
        raise Invalid.field(_show(alone[0]), "must be the only content of the message")
    is_empty = body.text is None and body.button is None and body.media is None and not alone
    if is_empty and not (body.referral is not None and simulator.has_lone_referrals):
        raise Invalid.field("text", "is required, unless there is a button, media or another content")
    if body.button is not None and (body.text is not None or body.media is not None):
        raise Invalid.field("button", "must be absent with a text or media")
    simulator.check_inbound(body)
    if body.echo and not simulator.has_echoes:
        echoing = [source for source in Source if SIMULATORS[source].has_echoes]
        raise Invalid.field("echo", f"must be false on this channel; only {', '.join(echoing)} send echoes")


def _show(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.title, others))


async def change_status(context: AppContext, tx: Tx, company: Company, body: SandboxStatusIn) -> SandboxStatus:
    """Changes how the simulator rates the account, and schedules its callbacks."""
    change = SIMULATORS[body.source].change_status
    if change is None:
        rating = [source for source in Source if SIMULATORS[source].change_status]
        raise Invalid.field("source", f"must be one of {', '.join(rating)}; other channels do not rate accounts")
    if body.is_unlimited and body.messaging_limit is not None:
        raise Invalid.field("messagingLimit", "must be absent with isUnlimited")
    account = build_account(context, company.id, body.source)
    posts = await change(tx, account, body, (await read_clock(tx, company.id)).now)
    for post in posts:
        await schedule(tx, company.id, account.hook, [PlannedCallback(post.headers, post.body, 0)])
    return SandboxStatus(body.source, [post.body.decode() for post in posts])


async def advance_clock(tx: Tx, company: Company, seconds: int) -> Clock:
    moved = await access.move_clock(tx, company.id, timedelta(seconds=seconds))
    now = (await read_clock(tx, company.id)).now
    return Clock(format_instant(now), moved.clock_offset_seconds)
