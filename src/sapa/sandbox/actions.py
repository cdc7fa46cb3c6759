"""How a test environment is played with."""

from datetime import timedelta
from email.utils import make_msgid

from sapa.access import actions as access
from sapa.context import Kit
from sapa.db.pool import Tx
from sapa.http.errors import Invalid
from sapa.messaging.channels.interface import Source
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.sending.recipients import find_source, parse_recipient
from sapa.sandbox.callbacks import schedule
from sapa.sandbox.channels import outbox
from sapa.sandbox.channels.accounts import build_account
from sapa.sandbox.channels.inbound import Heard
from sapa.sandbox.channels.simulator import new_token
from sapa.sandbox.channels.simulators import SPEAKERS
from sapa.sandbox.types import Clock, SandboxInbound, SandboxInboundIn, TestKeyRequired
from sapa.values.company import Company

ECHOING = (Source.MSGAPP_COEX, Source.SOCIAL_NETWORK, Source.PHOTO_SOCIAL, Source.SHORT_VIDEO)


def refuse_live(company: Company) -> None:
    if not company.is_test:
        raise TestKeyRequired


async def speak(kit: Kit, tx: Tx, company: Company, given: SandboxInboundIn) -> SandboxInbound:
    """Has the channel's simulator call back as the channel would."""
    source, sender = _parse_sender(company, given)
    _check(source, given)
    account = build_account(kit, company.id, source)
    heard = Heard(
        sender=sender,
        message_id=_new_message_id(source),
        at=await outbox.get_now(tx, company.id),
        text=given.text,
        choice=("button", given.button.id, given.button.title) if given.button else None,
        media=given.media,
        quoted=given.quoted,
        name=given.name,
        is_echo=given.echo,
        subject=given.subject,
    )
    post = SPEAKERS[source](account, heard)
    await schedule(tx, company.id, account.hook, post.headers, post.body, 0)
    return SandboxInbound(source, sender, heard.message_id, post.body.decode("utf-8", "replace"))


def _parse_sender(company: Company, given: SandboxInboundIn) -> tuple[Source, str]:
    source = find_source(given.source)
    if source is None:
        raise Invalid.field("source", f"must be one of {', '.join(Source)}")
    kinds = CHANNELS[source].capabilities.identities
    try:
        return source, parse_recipient(given.from_, None, company, kinds).value
    except Invalid as error:
        raise Invalid.field("from", (error.details or [])[0].message) from None


def _check(source: Source, given: SandboxInboundIn) -> None:
    if given.text is None and given.button is None and given.media is None:
        raise Invalid.field("text", "must be given, or a button, or media")
    if given.button is not None and (given.text is not None or given.media is not None):
        raise Invalid.field("button", "cannot be given together with a text or media")
    if given.media is not None and source is Source.WIDGET:
        raise Invalid.field("media", "cannot be sent by visitors of the web chat")
    if given.media not in {None, "image"} and source is Source.SHORT_VIDEO:
        raise Invalid.field("media", "must be an image on this channel")
    if given.media is not None and given.text is not None and source is Source.SHORT_VIDEO:
        raise Invalid.field("text", "cannot come with an image on this channel")
    if given.echo and source not in ECHOING:
        raise Invalid.field("echo", f"is something that only {', '.join(ECHOING)} know")


def _new_message_id(source: Source) -> str:
    match source:
        case Source.MSGAPP_CLOUD | Source.MSGAPP_COEX:
            return f"wamid.{new_token(32)}"
        case Source.MAIL:
            return make_msgid(domain="simulator.test")
        case _:
            return f"m_{new_token(30)}"


async def advance_clock(tx: Tx, company: Company, seconds: int) -> Clock:
    moved = await access.move_clock(tx, company.id, timedelta(seconds=seconds))
    now = await outbox.get_now(tx, company.id)
    text = now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{now.microsecond // 1000:03d}Z"
    return Clock(text, moved.clock_offset_seconds)
