"""Records timeline entries, in the transaction of the change."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from sapa.db.pool import Tx, notify_after_commit
from sapa.events import CHANNEL, EncodedEvents, Event, emit_encoded, encode_events, is_silent
from sapa.http.errors import Invalid, NotFound
from sapa.timeline import queries
from sapa.timeline.types import EncodedEntries, Source, TimelineEntry, TimelineNoteIn
from sapa.values.change_actor import ChangeActor
from sapa.values.company import Company


class NewTimelineEntry(Struct, frozen=True):
    """An entry to record on a customer's timeline."""

    customer_id: str
    type: str
    source: Source = "api"
    edit_log: str | None = None
    notes: str | None = None
    at: datetime | None = None
    """When it happened, if that was before now."""
    actor_name: str | None = None
    """The person of the console behind it."""


async def record(tx: Tx, company: Company, entry: NewTimelineEntry) -> None:
    await record_all(tx, company, [entry])


async def record_all(tx: Tx, company: Company, entries: Sequence[NewTimelineEntry], *, are_known: bool = False) -> None:
    """Nothing for deleted customers. Customers that `are_known` were stored or locked by the transaction, so they are
    not looked up."""
    await record_encoded(tx, company, encode_entries(entries), are_known=are_known)


def encode_entries(entries: Sequence[NewTimelineEntry]) -> EncodedEntries:
    """As `record_encoded` records them."""
    rows = [
        (entry.customer_id, entry.type, entry.source, entry.edit_log, entry.notes, entry.actor_name, entry.at)
        for entry in entries
    ]
    return queries.encode_entries(rows)


async def record_encoded(tx: Tx, company: Company, entries: EncodedEntries, *, are_known: bool = False) -> None:
    """For entries that were encoded while the database stored what they are about."""
    if entries.ids:
        await queries.insert_entries(tx, company.id, entries, are_known=are_known)


async def announce(
    tx: Tx, company: Company, events: Sequence[Event], entries: Sequence[NewTimelineEntry], *, are_known: bool = False
) -> None:
    """Emits the events of a change and records its entries, by one statement if there are both."""
    await announce_encoded(tx, company, encode_events(events), encode_entries(entries), are_known=are_known)


async def announce_encoded(
    tx: Tx, company: Company, events: EncodedEvents, entries: EncodedEntries, *, are_known: bool = False
) -> None:
    if not events.ids or not entries.ids or is_silent(tx):
        await emit_encoded(tx, company, events)
        await record_encoded(tx, company, entries, are_known=are_known)
    elif await queries.insert_with_events(tx, company.id, entries, events, are_known=are_known):
        notify_after_commit(tx, CHANNEL)


async def add_note(
    tx: Tx, company: Company, customer_id: str, body: TimelineNoteIn, actor: ChangeActor
) -> TimelineEntry:
    if not await queries.has_customer(tx, company.id, customer_id):
        raise NotFound
    if not body.notes.strip() or "\0" in body.notes:
        raise Invalid.field("notes", "must not be blank or contain a NUL character")
    person = actor.name if actor.type == "user" else None
    source: Source = "console" if person else "api"
    note = (customer_id, "note_added", source, None, body.notes.strip(), person, None)
    entries = queries.encode_entries([note])
    await queries.insert_entries(tx, company.id, entries, are_known=True)
    return await queries.get_entry(tx, company.id, entries.ids[0])


async def purge_customer(tx: Tx, company: Company, customer_id: str) -> None:
    await queries.delete_entries(tx, company.id, customer_id)
