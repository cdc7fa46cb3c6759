"""All checks before a message is stored and its channel is called, in the order in which they run.

What the channel would refuse, and we can know, is refused here with its exact reason.
"""

import re
from collections.abc import Sequence

import phonenumbers
from msgspec.structs import replace

from sapa.access.types import CompanyClock
from sapa.context import AppContext
from sapa.db.pool import Connection
from sapa.http.errors import ApiError, Invalid
from sapa.messaging.channels.identities import build_key, canonical_kind
from sapa.messaging.channels.interface import (
    BadIdentity,
    Buttons,
    Capabilities,
    Choices,
    Identity,
    IdentityKind,
    Interactive,
    LinkButton,
    Media,
    Source,
    TemplateCall,
    Text,
)
from sapa.messaging.channels.registry import CHANNELS, find_source
from sapa.messaging.channels.render import render, render_without_choices
from sapa.messaging.connections.accounts import ConnectedChannel
from sapa.messaging.connections.environment import get_environment
from sapa.messaging.connections.types import ChannelNotConnected
from sapa.messaging.consents import actions as consents
from sapa.messaging.contacts.types import Thread
from sapa.messaging.messages.types import ChannelUnsupported
from sapa.messaging.sending import queries
from sapa.messaging.sending.conversations import find_conversation
from sapa.messaging.sending.drafts import prepare_draft
from sapa.messaging.sending.file_rules import fit_files
from sapa.messaging.sending.pacing import wait_for_turn
from sapa.messaging.sending.template_values import check_values
from sapa.messaging.sending.types import (
    QUOTA_USED,
    AnsweredMail,
    AnySendIn,
    MessageDraft,
    SendContext,
    SendPlan,
    WindowClosed,
)
from sapa.messaging.templates.types import TemplateNotApproved
from sapa.messaging.tickets import TICKETS
from sapa.values.company import Company
from sapa.values.phones import is_region

MAX_SUBJECT_LENGTH = 500
NOT_IN_CONVERSATION = "must be the messageId2 of a message with this customer over this channel"

_DIAL = re.compile(r"\+?([1-9][0-9]{0,2})", re.ASCII).fullmatch

# Reply prefixes of mail programs in several languages.
_drop_prefixes = re.compile(r"(?:\s*(?:re|aw|sv|antw|bls|balas)\s*(?:\[\d+\])?\s*:)*\s*", re.IGNORECASE).sub


async def prepare(context: AppContext, company: Company, body: AnySendIn, send_context: SendContext) -> SendPlan:
    """Raises the first error it finds. Returns when it is the message's turn to be sent."""
    async with context.database.connection() as db:
        if send_context.agent_id is not None:
            await TICKETS.installed.check_agent(db, company, send_context.agent_id)
        plan = await _plan(context, db, company, body, send_context)
    if send_context.connection_id not in {None, plan.connected.connection.id}:
        raise ChannelNotConnected("The account that the customer wrote to is no longer connected.")
    return await wait_for_turn(context, company, plan)


async def _plan(
    context: AppContext, db: Connection, company: Company, body: AnySendIn, send_context: SendContext
) -> SendPlan:
    """Tries the named channels in order and takes the first that can send the message; without names, the first
    connected channel that fits."""
    sources = parse_sources(body.sources)
    parse_region(body.country_code, company)
    draft = await prepare_draft(context, db, company, body)
    if not sources:
        source = await _choose_source(db, company, body, draft)
        return await _check_source(context, db, company, body, send_context, draft, source)
    refusals: list[ApiError] = []
    for source in sources:
        try:
            return await _check_source(context, db, company, body, send_context, draft, source)
        except ApiError as error:
            refusals.append(error)
    raise refusals[0]


def parse_sources(names: str | Sequence[str] | None) -> list[Source]:
    """The named channels without duplicates; raises Invalid for an unknown name."""
    found = []
    for name in [names] if isinstance(names, str) else names or ():
        source = find_source(name)
        if source is None:
            raise Invalid.field("sources", f"must be one of {', '.join(Source)}")
        found.append(source)
    return list(dict.fromkeys(found))


def parse_region(country_code: str | None, company: Company) -> str:
    """The country of a number without a country code. ID, 62 and +62 mean the same."""
    if not country_code:
        return company.region
    text = country_code.strip().upper()
    if is_region(text):
        return text
    dialled = _DIAL(text.removeprefix("00"))
    region = phonenumbers.region_code_for_country_code(int(dialled[1])) if dialled else "ZZ"
    if not is_region(region):
        raise Invalid.field("countryCode", "must be a country's ISO code or its dialling code, such as ID, 62 or +62")
    return str(region)


async def _choose_source(db: Connection, company: Company, body: AnySendIn, draft: MessageDraft) -> Source:
    """The first connected channel that sends this kind of message to this form of recipient."""
    connected = await get_environment(company).accounts.list_sources(db, company)
    if not connected:
        raise ChannelNotConnected
    reachable = [source for source in connected if _has_format_of(body, company, source)]
    if not reachable:
        raise Invalid.field(
            "to", "must be a phone number or an e-mail address; to use another id, name its channel in sources"
        )
    for source in reachable:
        if draft.kind in CHANNELS[source].capabilities.sends:
            return source
    raise ChannelUnsupported


def _has_format_of(body: AnySendIn, company: Company, source: Source) -> bool:
    """Whether the form of `to` alone, such as that of a phone number, shows that it belongs to this channel."""
    kinds = [kind for kind in CHANNELS[source].capabilities.identities if kind.has_distinct_format]
    if not kinds:
        return False
    try:
        parse_recipient(body.to, body.country_code, company, kinds)
    except Invalid:
        return False
    return True


async def _check_source(
    context: AppContext,
    db: Connection,
    company: Company,
    body: AnySendIn,
    send_context: SendContext,
    draft: MessageDraft,
    source: Source,
) -> SendPlan:
    """Checks whether this channel can send this content to this recipient now."""
    capabilities = CHANNELS[source].capabilities
    to = _try_recipient(body, company, capabilities)
    conversation = await find_conversation(context, db, company, source, None if isinstance(to, Invalid) else to)
    if conversation is None:
        raise ChannelNotConnected(f"The channel {source} is not connected.")
    clock, connected, thread = conversation.clock, conversation.connected, conversation.thread
    draft = fit_files(source, capabilities, draft)
    _check_content(source, capabilities, draft)
    if isinstance(to, Invalid):
        raise to
    if _is_own(connected, to):
        raise Invalid.field("to", f"must not be the company's own account on {source}")
    _check_template(capabilities, draft)
    is_free_form = not (draft.template and capabilities.needs_approved_templates)
    if is_free_form:
        await check_window(db, company, connected, to, clock, thread)
    is_automatic = send_context.feature_source == "AUTOMATION" and draft.template is None
    plan = SendPlan(
        draft,
        connected,
        to,
        clock,
        conversation.clock_read,
        thread,
        conversation.customer_id,
        throughput=conversation.throughput,
        is_automatic=is_automatic,
    )
    if draft.is_marketing:
        await consents.check(db, company, source, to, needs_subscription=send_context.needs_subscription)
        if capabilities.has_unsubscribe_links:
            plan = replace(plan, unsubscribe_url=await consents.get_or_create_link(db, context, company, source, to))
    if capabilities.has_threads:
        return await _with_mail_thread(db, company, plan, body.reply_to)
    return plan if body.reply_to is None else await _with_quote(db, company, plan, body.reply_to)


def _try_recipient(body: AnySendIn, company: Company, capabilities: Capabilities) -> Identity | Invalid:
    try:
        return parse_recipient(body.to, body.country_code, company, capabilities.identities)
    except Invalid as error:
        return error


def _check_content(source: Source, capabilities: Capabilities, draft: MessageDraft) -> None:
    if draft.kind not in capabilities.sends:
        raise ChannelUnsupported(f"{source} does not support messages of the kind {draft.kind}.")
    match draft.content:
        case Media(type=type, caption=caption):
            if type not in capabilities.files:
                raise ChannelUnsupported(f"{source} does not support media of the type {type}.")
            if caption and type == "audio" and not capabilities.has_audio_captions:
                raise Invalid.field(draft.caption_field, "must be absent for audio")
            if caption and not capabilities.has_captions:
                raise ChannelUnsupported(
                    f"{source} does not support captions. Send the text and the file as two messages."
                )
            limit = capabilities.longest_caption or capabilities.longest_text
            _check_length(source, draft.caption_field, caption or "", limit)
        case Text(body=body):
            _check_length(source, "message", body, capabilities.longest_text)
        case TemplateCall() if capabilities.needs_approved_templates:
            check_values(draft.content)
        case TemplateCall(rendered=rendered):
            _check_length(source, "params", rendered, capabilities.longest_text)
        case _:
            _check_interactive(source, capabilities, draft.content)


def _check_interactive(source: Source, capabilities: Capabilities, content: Interactive) -> None:
    match content:
        case _ if type(content) not in capabilities.interactives:
            raise ChannelUnsupported(f"{source} does not support this kind of interactive message.")
        case Buttons() | Choices():
            text = render_without_choices(content)
        case LinkButton(body=body):
            text = body if len(body) <= capabilities.longest_link_body else render(content)
        case _:
            text = content.body or ""
    _check_length(source, "interactive", text, capabilities.longest_text)


def _check_length(source: Source, field: str, text: str, limit: int) -> None:
    if len(text) > limit:
        raise Invalid.field(field, f"must have at most {limit} characters of text on {source}")


def parse_recipient(to: str, country_code: str | None, company: Company, kinds: Sequence[IdentityKind]) -> Identity:
    """The recipient as the first of `kinds` that fits; raises Invalid with what the first kind needs."""
    region = parse_region(country_code, company)
    text, advice = to.strip(), list[str]()
    for kind in kinds:
        if not kind.has_distinct_format and get_environment(company).accepts_recipient_id(text):
            return Identity(kind.name, text)
        try:
            return Identity(kind.name, kind.parse(text, region))
        except BadIdentity as error:
            advice.append(str(error))
    raise Invalid.field("to", advice[0])


def _is_own(connected: ConnectedChannel, to: Identity) -> bool:
    """Whether the recipient is the company's own account."""
    kind, account = connected.channel.capabilities.identities[0].name, connected.connection.account
    own = (Identity(kind, account[field]) for field in connected.channel.own_fields if account.get(field))
    return canonical_kind(to.kind) == kind and build_key(to) in map(build_key, own)


def _check_template(capabilities: Capabilities, draft: MessageDraft) -> None:
    template = draft.template
    if template is None or not capabilities.needs_approved_templates or template.status == "APPROVED":
        return
    reason = f": {template.reason}" if template.reason else ""
    raise TemplateNotApproved(
        f"The template {template.name} in {template.language} is {template.status.lower()}{reason}."
    )


async def check_window(
    db: Connection,
    company: Company,
    connected: ConnectedChannel,
    to: Identity,
    clock: CompanyClock,
    thread: Thread | None,
) -> None:
    """Most channels take free-form messages only for some time after the customer wrote, and only up to a quota."""
    window = connected.channel.capabilities.window
    if window is None:
        return
    last = thread.last_inbound_at if thread else None
    reason = await get_environment(company).find_closed_reason(db, connected, to, clock, last)
    if reason is not None:
        raise WindowClosed(reason)
    if thread is None or last is None:
        return
    if clock.now > last + window:
        raise WindowClosed(
            f"The customer last wrote at {last:%Y-%m-%dT%H:%M:%SZ}, which is too long ago. Send a template."
        )
    quota = connected.channel.capabilities.max_in_window
    if quota is not None and thread.sent_in_window >= quota:
        raise WindowClosed(QUOTA_USED.format(most=quota))


async def _with_quote(db: Connection, company: Company, plan: SendPlan, id: str) -> SendPlan:
    """Quotes a message of the same conversation, by the channel's id of it."""
    connection = plan.connected.connection
    if not plan.connected.channel.capabilities.has_quotes:
        raise ChannelUnsupported(f"{connection.source} cannot quote a message. Send it without replyTo.")
    thread = plan.thread
    target = await queries.find_target(db, company.id, id)
    if (
        target is None
        or thread is None
        or target.connection_id != connection.id
        or target.contact_id != thread.contact_id
    ):
        raise Invalid.field("replyTo", NOT_IN_CONVERSATION)
    if target.provider_id is None:
        raise Invalid.field("replyTo", "must be a message that the channel has accepted")
    return replace(plan, quoted=target.provider_id, quoted_id=id)


async def _with_mail_thread(db: Connection, company: Company, plan: SendPlan, reply_to: str | None) -> SendPlan:
    """Makes a mail a reply to the one that `reply_to` names, or else to the customer's last one, so that mail programs
    show both in one thread. Without `reply_to`, a template starts a new thread."""
    if plan.draft.template is not None and reply_to is None:
        return plan
    thread = plan.thread
    if reply_to is not None:
        plan = await _with_quote(db, company, plan, reply_to)
    answered_id = reply_to or (thread.last_inbound_id if thread else None)
    mail = None if answered_id is None else await queries.find_mail(db, company.id, answered_id)
    if mail is None or mail.provider_id is None:
        return plan
    answered = AnsweredMail(mail.provider_id, mail.thread or (), build_subject(mail.subject))
    draft = replace(plan.draft, subject=plan.draft.subject or answered.subject)
    return replace(plan, draft=draft, answered=answered, quoted_id=answered_id)


def build_subject(subject: str | None) -> str | None:
    """The subject with one "Re:", however long the thread is."""
    plain = _drop_prefixes("", subject or "", count=1)
    return f"Re: {plain}"[:MAX_SUBJECT_LENGTH] if plain else None
