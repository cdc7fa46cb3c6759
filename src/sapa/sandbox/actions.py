"""How a test environment is played with."""

from datetime import timedelta

from sapa.access import actions as access
from sapa.context import AppContext
from sapa.db.pool import Tx
from sapa.http.errors import Invalid
from sapa.messaging.channels.interface import Source
from sapa.messaging.channels.registry import CHANNELS, find_source
from sapa.messaging.sending.preflight import parse_recipient
from sapa.sandbox.callbacks import schedule
from sapa.sandbox.channels import outbox
from sapa.sandbox.channels.accounts import build_account
from sapa.sandbox.channels.inbound import SimulatedInbound
from sapa.sandbox.channels.simulator import ChannelSimulator
from sapa.sandbox.channels.simulators import SIMULATORS
from sapa.sandbox.types import Clock, SandboxInbound, SandboxInboundIn, TestKeyRequired
from sapa.values.company import Company


def refuse_live(company: Company) -> None:
    if not company.is_test:
        raise TestKeyRequired


async def speak(context: AppContext, tx: Tx, company: Company, given: SandboxInboundIn) -> SandboxInbound:
    """Has the channel's simulator call back as the channel would."""
    source, sender = _parse_sender(company, given)
    simulator = SIMULATORS[source]
    _check(simulator, given)
    account = build_account(context, company.id, source)
    inbound = SimulatedInbound(
        sender=sender,
        message_id=simulator.build_message_id(),
        at=await outbox.get_now(tx, company.id),
        text=given.text,
        choice=("button", given.button.id, given.button.title) if given.button else None,
        media=given.media,
        quoted=given.quoted,
        name=given.name,
        is_echo=given.echo,
        subject=given.subject,
    )
    post = simulator.build_inbound(account, inbound)
    await schedule(tx, company.id, account.hook, post.headers, post.body, 0)
    return SandboxInbound(source, sender, inbound.message_id, post.body.decode("utf-8", "replace"))


def _parse_sender(company: Company, given: SandboxInboundIn) -> tuple[Source, str]:
    source = find_source(given.source)
    if source is None:
        raise Invalid.field("source", f"must be one of {', '.join(Source)}")
    kinds = CHANNELS[source].capabilities.identities
    try:
        return source, parse_recipient(given.from_, None, company, kinds).value
    except Invalid as error:
        raise Invalid.field("from", (error.details or [])[0].message) from None


def _check(simulator: ChannelSimulator, given: SandboxInboundIn) -> None:
    if given.text is None and given.button is None and given.media is None:
        raise Invalid.field("text", "must be given, or a button, or media")
    if given.button is not None and (given.text is not None or given.media is not None):
        raise Invalid.field("button", "cannot be given together with a text or media")
    simulator.check_inbound(given)
    if given.echo and not simulator.has_echoes:
        echoing = [source for source, each in SIMULATORS.items() if each.has_echoes]
        raise Invalid.field("echo", f"is something that only {', '.join(echoing)} know")


async def advance_clock(tx: Tx, company: Company, seconds: int) -> Clock:
    moved = await access.move_clock(tx, company.id, timedelta(seconds=seconds))
    now = await outbox.get_now(tx, company.id)
    text = now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{now.microsecond // 1000:03d}Z"
    return Clock(text, moved.clock_offset_seconds)
