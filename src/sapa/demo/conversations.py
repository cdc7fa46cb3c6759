"""Records the demo shop's conversations at their times, by the actions that channels and agents use."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import count

from msgspec import UNSET, Struct
from msgspec.structs import replace

from sapa.access import actions as access
from sapa.customers.types import CustomerPatch
from sapa.db.pool import Tx
from sapa.demo.conversation_texts import DemoConversation, DemoLine, build_conversations
from sapa.messaging.channels.interface import Identity, ReceivedItem, SendReceipt, StatusReport
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.contacts import actions as contacts
from sapa.messaging.contacts.types import Contact
from sapa.messaging.inbound import actions as inbound
from sapa.messaging.messages import actions as messages
from sapa.messaging.messages.types import MESSAGE_ID, NewMessage
from sapa.messaging.tickets import TICKETS, OutboundMessage
from sapa.messaging.widget import visits
from sapa.sandbox.channels.accounts import build_connection_id, build_public
from sapa.support import changes, tickets
from sapa.support.agents import actions as agents
from sapa.support.ratings import actions as ratings
from sapa.support.ratings.types import RatingIn
from sapa.support.requests import NoteIn, TicketPatch
from sapa.support.types import Agent, AgentIn, SupportSettingsPatch
from sapa.values.company import Company

AGENTS = (AgentIn(name="Sari"), AgentIn(name="Budi"), AgentIn(name="Asisten", type="ai"))
READ_AFTER = timedelta(seconds=40)


class Recording(Struct, frozen=True):
    """A conversation while it is recorded."""

    story: DemoConversation
    company: Company
    connection_id: str
    own_name: str
    """The company's number or address."""
    contact: Contact
    identity: Identity
    now: datetime
    ticket_id: str | None = None
    agent: Agent | None = None
    """Who wrote last."""


async def fill(tx: Tx, company: Company, people: Sequence[CustomerPatch], label_ids: Mapping[str, str]) -> None:
    """`people` are the demo customers, `label_ids` the labels by their names."""
    now = (await access.read_clock(tx, company.id)).now
    await agents.change_settings(tx, company, SupportSettingsPatch(ask_rating=True))
    staff = {agent.name: await agents.create(tx, company, agent) for agent in AGENTS}
    numbers = count(1)
    for story in build_conversations():
        recording = await _begin(tx, company, story, people, now)
        for line in story.lines:
            recording = await _record(tx, recording, line, staff, f"demo.{next(numbers)}")
        await _file(tx, recording, label_ids)


async def _begin(
    tx: Tx, company: Company, story: DemoConversation, people: Sequence[CustomerPatch], now: datetime
) -> Recording:
    channel = CHANNELS[story.source]
    [kind, *_] = channel.capabilities.identities
    identity = Identity(kind.name, story.id)
    if story.customer is not None:
        person = people[story.customer - 1]
        identity = Identity(kind.name, str(person.email if kind.name == "email" else person.phone_number))
    contact = await contacts.find_or_create(tx, company, [identity], story.name)
    if story.name and story.stated_contact:
        await visits.add_simulated(tx, company.id, story.id, story.name, story.stated_contact)
    public = build_public(company.id, story.source, channel.fields)
    own_name = next((public[field] for field in channel.own_fields if field in public), story.source.lower())
    return Recording(story, company, build_connection_id(company.id, story.source), own_name, contact, identity, now)


async def _record(
    tx: Tx, recording: Recording, line: DemoLine, staff: Mapping[str, Agent], provider_id: str
) -> Recording:
    at = recording.now - timedelta(minutes=line.minutes_ago)
    if line.author == "customer":
        return await _receive(tx, recording, line, at, provider_id)
    if line.author == "note":
        if recording.ticket_id is not None and recording.agent is not None:
            note = NoteIn(agent_id=recording.agent.id, body=line.text)
            await tickets.add_note(tx, recording.company, recording.ticket_id, note, at=at)
        return recording
    recording = replace(recording, agent=staff[line.author])
    await _send(tx, recording, staff[line.author], line.text, at, provider_id)
    return recording


async def _receive(tx: Tx, recording: Recording, line: DemoLine, at: datetime, provider_id: str) -> Recording:
    story = recording.story
    item = ReceivedItem(
        provider_id, [recording.identity], at, "text", line.text, sender_name=story.name, subject=story.subject
    )
    message = await inbound.receive(
        tx,
        recording.company,
        recording.connection_id,
        story.source,
        item,
        recording.contact,
        connected_number=recording.own_name,
    )
    return recording if message is None else replace(recording, ticket_id=message.ticket_id)


async def _send(tx: Tx, recording: Recording, agent: Agent, text: str, at: datetime, provider_id: str) -> None:
    company, story, identity = recording.company, recording.story, recording.identity
    id, contact_id = MESSAGE_ID.new(), recording.contact.id
    outbound = OutboundMessage(
        message_id=id,
        connection_id=recording.connection_id,
        contact_id=contact_id,
        body=text,
        agent_id=agent.id,
        ticket_id=recording.ticket_id,
        at=at,
    )
    await TICKETS.installed.link_outbound(tx, company, outbound)
    new = NewMessage(
        id=id,
        direction="out",
        source=story.source,
        connection_id=recording.connection_id,
        contact_id=contact_id,
        customer_id=recording.contact.customer_id,
        identity_kind=identity.kind,
        identity=identity.value,
        client_number=identity.value,
        connected_number=recording.own_name,
        type="text",
        body=text,
        subject=f"Re: {story.subject}" if story.subject else None,
        feature_source="AI_AGENT" if agent.type == "ai" else "INBOX",
        agent_id=agent.id,
        ticket_id=recording.ticket_id,
        status="pending",
        created_at=at,
    )
    await messages.record_outbound(tx, company, new)
    await messages.accept(tx, company, story.source, id, SendReceipt(provider_id), at)
    if "read" in CHANNELS[story.source].capabilities.reports:
        read = StatusReport("read", at + READ_AFTER, message_id=provider_id)
        await messages.apply(tx, company, story.source, read, recording.now)


async def _file(tx: Tx, recording: Recording, label_ids: Mapping[str, str]) -> None:
    """Label, priority and snooze right after the last line; resolution and rating."""
    company, story, id = recording.company, recording.story, recording.ticket_id
    if id is None:
        return
    hours = story.snoozed_hours
    patch = TicketPatch(
        label_ids=[label_ids[story.label]] if story.label else UNSET,
        priority=story.priority or UNSET,
        snoozed_until=recording.now + timedelta(hours=hours) if hours else UNSET,
        actor_id=recording.agent.id if recording.agent else None,
    )
    last = recording.now - timedelta(minutes=story.lines[-1].minutes_ago)
    await changes.update(tx, company, id, patch, at=last)
    if story.resolved_ago is not None and recording.agent is not None:
        at = recording.now - timedelta(minutes=story.resolved_ago)
        await tickets.resolve(tx, company, id, recording.agent.id, at=at)
        if story.score is not None:
            await ratings.rate_ticket(tx, company, id, RatingIn(score=story.score, comment=story.comment))
