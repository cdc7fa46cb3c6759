"""Decides who may get marketing messages, and records what people, companies and channels say about it.

Both must be clear: the recipient's number, address or id on the channel, and the customer. A stop that came from the
person stands with the identity, so that no change of the customer lifts it.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from secrets import token_urlsafe
from typing import Literal

import msgspec

from sapa.access.actions import read_clock
from sapa.context import AppContext
from sapa.customers import actions as customers
from sapa.customers.subscriptions import ConsentProofIn, SubscriptionChange
from sapa.customers.types import Customer, CustomerRemoved, Subscription
from sapa.db.pool import Connection, Tx
from sapa.http.errors import Invalid, NotFound
from sapa.messaging.channel_events.types import PreferenceReceived
from sapa.messaging.channels.identities import EMAIL, PHONE, build_key, canonical, canonical_kind, list_spellings
from sapa.messaging.channels.interface import Identity, ReceivedItem, Source
from sapa.messaging.channels.registry import CHANNELS, find_source
from sapa.messaging.consents import queries
from sapa.messaging.consents.types import (
    ALL_CHANNELS,
    CUSTOMER,
    DEFAULT_SETTINGS,
    Consent,
    ConsentIn,
    ConsentMissing,
    ConsentProof,
    ConsentSettings,
    ConsentSettingsPatch,
    ConsentSource,
    ConsentStatus,
    NewConsent,
    StopOfCustomer,
    UnsubscribedByPerson,
    UnsubscribeLink,
    merge_patch,
)
from sapa.messaging.consents.words import LONGEST_WORD, START_WORDS, STOP_WORDS, find_choice, normalise
from sapa.messaging.contacts import actions as contacts
from sapa.messaging.contacts.types import Contact
from sapa.values.change_actor import ChangeActor
from sapa.values.company import Company
from sapa.values.instants import format_instant, truncate_to_milliseconds

WORD_TYPES = frozenset({"text", "button"})
"""The types of messages that may be a word; the caption of a picture is not."""
PATH = "/unsubscribe/"
TOKEN_BYTES = 24

REFUSED = "The recipient unsubscribed from marketing messages. Send a template of another category, or none."
NOT_SUBSCRIBED = "The recipient did not subscribe to marketing messages, which automatic ones need."

SOURCE_OF_ACTOR: dict[str, ConsentSource] = {"api_key": "api", "user": "console", "import": "import"}

_CHOICES: dict[str, ConsentStatus] = {"stop": "unsubscribe", "resume": "subscribe", "signup": "subscribe"}
"""What people choose at a channel; other words decide nothing."""

_KINDS: dict[Source, list[str]] = {
    source: sorted({canonical_kind(kind.name) for kind in channel.capabilities.identities})
    for source, channel in CHANNELS.items()
}
"""The kinds of identities of each channel, as contacts have them."""
_APPS: dict[str, frozenset[str]] = {
    kind: frozenset(source for source, kinds in _KINDS.items() if kind in kinds)
    for kind in {kind for kinds in _KINDS.values() for kind in kinds}
}
"""The channels that reach an identity of each kind."""

_read_subscriptions = msgspec.json.Decoder(list[Subscription]).decode


async def check(
    db: Connection, company: Company, source: Source, to: Identity, *, needs_subscription: bool = False
) -> None:
    """Raises ConsentMissing unless a marketing message may go to the recipient now."""
    reason = await find_refusal(db, company, source, to, needs_subscription=needs_subscription)
    if reason is not None:
        raise ConsentMissing(reason)


async def find_refusal(
    db: Connection, company: Company, source: Source, to: Identity, *, needs_subscription: bool = False
) -> str | None:
    """Why a marketing message may not go to the recipient. Automatic ones need a subscription, unless the company chose
    otherwise."""
    apps = [ALL_CHANNELS, source]
    phones, email = _split_contact(to)
    found = await queries.get_recipient(
        db, company.id, _build_subject(to), _KINDS[source], apps, phones, email and email.casefold()
    )
    statuses = set(found.identity_statuses) | {
        entry.status for stored in found.subscriptions for entry in _read_subscriptions(stored) if entry.app in apps
    }
    if "unsubscribe" in statuses:
        return REFUSED
    if needs_subscription and not statuses:
        settings = await get_settings(db, company)
        return NOT_SUBSCRIBED if settings.automatic_marketing == "subscribed" else None
    return None


async def has_stops(tx: Tx, company: Company) -> bool:
    return await queries.has_stops(tx, company.id)


async def resolve(tx: Tx, company: Company, changes: Sequence[SubscriptionChange]) -> Sequence[Sequence[Subscription]]:
    """What each customer subscribes to after the change. Consent that a caller leaves out stays, other apps do not."""
    stopped: list[set[str]] = [set() for _ in changes]
    for stop in await _list_stops(tx, company, changes):
        stopped[stop.number] |= _list_stopped_apps(stop)
    return [_merge(change, apps) for change, apps in zip(changes, stopped, strict=True)]


def _merge(change: SubscriptionChange, stopped: set[str]) -> list[Subscription]:
    statuses: dict[str, ConsentStatus] = {entry.app: entry.status for entry in change.after}
    for entry in change.before:
        if is_consent_app(entry.app):
            statuses.setdefault(entry.app, entry.status)
    for app in sorted(stopped):
        statuses[app] = "unsubscribe"
    return [Subscription(app, status) for app, status in statuses.items()]


def is_consent_app(app: str) -> bool:
    """Whether subscriptions to it decide anything."""
    return app == ALL_CHANNELS or app in CHANNELS


async def _list_stops(
    db: Connection, company: Company, changes: Sequence[SubscriptionChange]
) -> Sequence[StopOfCustomer]:
    if len(changes) > 1 and not await queries.has_stops(db, company.id):
        return []  # of a large file each customer would be looked up in vain
    identities = [
        (number, *_build_subject(identity))
        for number, change in enumerate(changes)
        for identity in _list_own_identities(change.phone_number, change.email_key)
    ]
    known = [(number, change.customer_id) for number, change in enumerate(changes) if change.customer_id]
    return await queries.list_stops(db, company.id, identities, known)


def _list_stopped_apps(stop: StopOfCustomer) -> frozenset[str]:
    """The channels over which the identity gets no marketing messages."""
    return _APPS.get(stop.kind, frozenset()) if stop.app == ALL_CHANNELS else frozenset({stop.app})


async def record_changes(tx: Tx, company: Company, changes: Sequence[SubscriptionChange], actor: ChangeActor) -> None:
    """Of customers that were just stored."""
    now = (await read_clock(tx, company.id)).now
    new = [consent for change in changes for consent in _build_consents(change, actor, now)]
    if new:
        await queries.record(tx, company.id, new, now, lifts_stops=False)


def _build_consents(change: SubscriptionChange, actor: ChangeActor, now: datetime) -> Iterable[NewConsent]:
    before = {entry.app: entry.status for entry in change.before}
    for entry in change.after:
        if is_consent_app(entry.app) and (change.proof or before.get(entry.app) != entry.status):
            yield _build_customer_consent(change.customer_id or "", entry, change.proof, actor, now)


def _build_customer_consent(
    customer_id: str, entry: Subscription, proof: ConsentProofIn | None, actor: ChangeActor, now: datetime
) -> NewConsent:
    return NewConsent(
        kind=CUSTOMER,
        key=customer_id,
        app=entry.app,
        status=entry.status,
        source=SOURCE_OF_ACTOR.get(actor.type, "system"),
        proof=_build_proof(proof),
        obtained_at=_get_obtained_at(proof, now),
        actor=actor,
    )


def _build_proof(proof: ConsentProofIn | None) -> ConsentProof:
    if proof is None:
        return ConsentProof()
    obtained_at = None if proof.obtained_at is None else format_instant(proof.obtained_at)
    return ConsentProof(text=proof.text, place=proof.place, reference=proof.reference, obtained_at=obtained_at)


def _get_obtained_at(proof: ConsentProofIn | None, now: datetime) -> datetime:
    return min(now, truncate_to_milliseconds((proof and proof.obtained_at) or now))


async def record_for_customer(
    tx: Tx, company: Company, customer_id: str, body: ConsentIn, actor: ChangeActor
) -> Consent:
    """Raises UnsubscribedByPerson if it would lift a person's stop, which takes a user of the console and a proof."""
    app = ALL_CHANNELS if body.app == ALL_CHANNELS else find_source(body.app)
    if app is None:
        raise Invalid.field("app", f"must be {ALL_CHANNELS} or one of {', '.join(Source)}")
    customer = await customers.find_locked(tx, company, customer_id)
    if customer is None:
        raise NotFound
    now = (await read_clock(tx, company.id)).now
    entry = Subscription(app, body.status)
    new = _build_customer_consent(customer_id, entry, body.proof, actor, now)
    lifted = [] if body.status == "unsubscribe" else await _lift_stops(tx, company, customer, new, body.proof)
    await queries.record(tx, company.id, [new, *lifted], now, lifts_stops=bool(lifted))
    apps = {entry.app} | {app for lift in lifted for app in _APPS.get(lift.kind, ())}
    await _show(tx, company, customer_id, [Subscription(app, entry.status) for app in sorted(apps)])
    return await queries.get_current(tx, company.id, new)


async def _lift_stops(
    db: Connection, company: Company, customer: Customer, new: NewConsent, proof: ConsentProofIn | None
) -> list[NewConsent]:
    """A setting at the channel is not ours to lift."""
    stops = [
        stop
        for stop in await _list_stops(db, company, [_build_change(customer)])
        if new.app == ALL_CHANNELS or new.app in _list_stopped_apps(stop)
    ]
    if not stops:
        return []
    has_proof = proof is not None and bool(proof.text or proof.place or proof.reference)
    if new.source != "console" or not has_proof:
        raise UnsubscribedByPerson
    if any(stop.app != ALL_CHANNELS for stop in stops):
        raise UnsubscribedByPerson(
            "The customer turned marketing messages off in the channel's app. Only they can turn them on again, there."
        )
    return [
        msgspec.structs.replace(new, kind=stop.kind, key=stop.key, app=ALL_CHANNELS, identity=stop.key)
        for stop in stops
    ]


async def list_for_customer(
    db: Connection, company: Company, customer_id: str, limit: int, offset: int
) -> tuple[list[Consent], int]:
    """All decisions about the customer and about their numbers, addresses and ids; raises NotFound."""
    customer = await customers.find_customer(db, company, customer_id)
    if customer is None:
        raise NotFound
    own = [_build_subject(identity) for identity in _list_own_identities(customer.phone_number, customer.email)]
    return await queries.list_records(db, company.id, customer_id, own, limit, offset)


async def find_word(
    db: Connection, company: Company, source: Source, inbound: ReceivedItem
) -> tuple[ConsentStatus, str] | None:
    """What a person asks for with one of the words as the whole message, and the word; None for any other message.

    Of a mail that quotes ours it is the text above. A sender whom the channel did not check can stop messages, which
    does no harm, but not start them again.
    """
    text = (inbound.own_text or inbound.body or "").strip() or (inbound.subject or "").strip()
    if inbound.type not in WORD_TYPES or not 0 < len(text) <= 2 * LONGEST_WORD:
        return None
    status = find_choice(text, await get_settings(db, company))
    if status == "subscribe" and CHANNELS[source].capabilities.has_forgeable_senders:
        authentication = inbound.authentication
        if authentication is None or authentication.dmarc != "pass":
            return None
    return None if status is None else (status, text)


async def apply_word(
    tx: Tx,
    company: Company,
    source: Source,
    contact: Contact,
    status: ConsentStatus,
    word: str,
    message_id: str,
    at: datetime,
) -> Literal["changed", "unchanged", "ignored"]:
    """A stop is unchanged if it is repeated, or older than a start. A start is ignored as long as there is nothing to
    lift, or as something else forbids the messages: then it is a message like any other."""
    identities = _list_channel_identities(source, contact.identities)
    proof = ConsentProof(text=word, place=source, reference=message_id, obtained_at=format_instant(at))
    if status == "subscribe":
        if await find_refusal(tx, company, source, identities[0]) is None:
            return "ignored"
        await _record_choice(tx, company, identities, ALL_CHANNELS, status, "word", proof, at)
        await _show_channels(tx, company, contact.customer_id, identities, status)
        return "ignored" if await find_refusal(tx, company, source, identities[0]) else "changed"
    if not await _record_choice(tx, company, identities, ALL_CHANNELS, status, "word", proof, at):
        return "unchanged"
    await _show_channels(tx, company, contact.customer_id, identities, status)
    return "changed"


async def apply_preference(tx: Tx, company: Company, received: PreferenceReceived) -> None:
    """Subscribes to settings that people change at a channel: a record of its own beside what they wrote to us."""
    preference, source = received.preference, received.source
    status = _CHOICES.get(preference.choice)
    if status is None:
        return
    identities = list(dict.fromkeys(map(canonical, received.identities)))
    proof = ConsentProof(
        text=preference.detail, place=source, reference=received.event_id, obtained_at=format_instant(received.at)
    )
    if await _record_choice(tx, company, identities, source, status, "channel_preference", proof, received.at):
        await _show_source(tx, company, identities, source, status)


async def record_refusal(
    tx: Tx, company: Company, source: Source, to: Identity, message_id: str, reason: str | None, at: datetime
) -> None:
    """The channel refused a marketing message because the person turned those off there."""
    identities = [canonical(to)]
    proof = ConsentProof(text=reason, place=source, reference=message_id, obtained_at=format_instant(at))
    if await _record_choice(tx, company, identities, source, "unsubscribe", "channel_refusal", proof, at):
        await _show_source(tx, company, identities, source, "unsubscribe")


async def get_or_create_link(
    db: Connection, context: AppContext, company: Company, source: Source, to: Identity
) -> str:
    """The address at which the recipient unsubscribes: one for each person, and opaque."""
    kind, key = _build_subject(to)
    token = await queries.find_token(db, company.id, kind, key)
    if token is None:
        await queries.insert_link(db, company.id, key, token_urlsafe(TOKEN_BYTES), canonical(to), source)
        token = await queries.find_token(db, company.id, kind, key)
    return f"{context.settings.server.address}{PATH}{company.id}-{token}"


async def find_link(db: Connection, company_id: int, token: str) -> UnsubscribeLink | None:
    return await queries.find_link(db, company_id, token)


async def apply_link(
    tx: Tx,
    company: Company,
    link: UnsubscribeLink,
    status: ConsentStatus,
    source: ConsentSource,
    message_id: str | None,
) -> None:
    """The person used the link of a mail, or their mail program did for them."""
    now = (await read_clock(tx, company.id)).now
    identities = [Identity(link.kind, link.identity)]
    proof = ConsentProof(place=link.source, reference=message_id, obtained_at=format_instant(now))
    await _record_choice(tx, company, identities, ALL_CHANNELS, status, source, proof, now)
    await _show_channels(tx, company, None, identities, status)


async def is_stopped(db: Connection, company: Company, link: UnsubscribeLink) -> bool:
    return await find_refusal(db, company, Source(link.source), Identity(link.kind, link.identity)) is not None


async def _record_choice(
    tx: Tx,
    company: Company,
    identities: Sequence[Identity],
    app: str,
    status: ConsentStatus,
    source: ConsentSource,
    proof: ConsentProof,
    at: datetime,
) -> bool:
    """What the person said; false if nothing changed."""
    now = (await read_clock(tx, company.id)).now
    by_subject = {_build_subject(identity): identity for identity in identities}
    new = [
        NewConsent(
            kind=kind,
            key=key,
            app=app,
            identity=identity.value,
            status=status,
            source=source,
            proof=proof,
            obtained_at=at,
        )
        for (kind, key), identity in by_subject.items()
    ]
    return bool(await queries.record(tx, company.id, new, now, lifts_stops=False))


async def _show_channels(
    tx: Tx, company: Company, customer_id: str | None, identities: Sequence[Identity], status: ConsentStatus
) -> None:
    """Shows a choice about identities with their customer, on every channel that reaches them."""
    apps = sorted({app for identity in identities for app in _APPS.get(identity.kind, ())})
    await _show_with_customer(tx, company, customer_id, identities, [Subscription(app, status) for app in apps])


async def _show_source(
    tx: Tx, company: Company, identities: Sequence[Identity], source: Source, status: ConsentStatus
) -> None:
    await _show_with_customer(tx, company, None, identities, [Subscription(source, status)])


async def _show_with_customer(
    tx: Tx,
    company: Company,
    customer_id: str | None,
    identities: Sequence[Identity],
    entries: Sequence[Subscription],
) -> None:
    for identity in identities:
        customer_id = customer_id or await contacts.find_customer_id(tx, company, identity)
    if customer_id is not None:
        await _show(tx, company, customer_id, entries)


async def _show(tx: Tx, company: Company, customer_id: str, entries: Sequence[Subscription]) -> None:
    """Writes consent into the customer's subscriptions. As long as any stop is left on a channel, they show it."""
    customer = await customers.find_locked(tx, company, customer_id)
    if customer is None:
        return
    stopped = {
        app for stop in await _list_stops(tx, company, [_build_change(customer)]) for app in _list_stopped_apps(stop)
    }
    shown = [Subscription(entry.app, "unsubscribe" if entry.app in stopped else entry.status) for entry in entries]
    await customers.set_subscriptions(tx, company, customer, shown)


async def purge_customer(tx: Tx, company: Company, removed: CustomerRemoved) -> None:
    """Subscribes to deleted customers. What they said about a number or an address stays: it must be kept in future."""
    await queries.delete_of_customer(tx, company.id, removed.customer_id)


async def get_settings(db: Connection, company: Company) -> ConsentSettings:
    return await queries.find_settings(db, company.id) or DEFAULT_SETTINGS


async def change_settings(tx: Tx, company: Company, patch: ConsentSettingsPatch) -> ConsentSettings:
    """Raises Invalid for a word without letters, or one that would mean both."""
    settings = merge_patch(await queries.find_locked_settings(tx, company.id) or DEFAULT_SETTINGS, patch)
    stops = _check_words("stopWords", settings.stop_words, set(map(normalise, START_WORDS)))
    _check_words("startWords", settings.start_words, stops | set(map(normalise, STOP_WORDS)))
    await queries.save_settings(tx, company.id, settings, (await read_clock(tx, company.id)).real)
    return settings


def _check_words(field: str, words: Sequence[str], others: set[str]) -> set[str]:
    normalised = [normalise(word) for word in words]
    for number, word in enumerate(normalised):
        if not word:
            raise Invalid.field(f"{field}[{number}]", "must contain letters or digits")
        if word in others:
            raise Invalid.field(f"{field}[{number}]", "already has the opposite meaning; use another word")
    return set(normalised)


def _build_change(customer: Customer) -> SubscriptionChange:
    return SubscriptionChange(
        customer_id=customer.id,
        email_key=customer.email,
        phone_number=customer.phone_number,
        before=[],
        after=[],
    )


def _build_subject(identity: Identity) -> tuple[str, str]:
    return canonical_kind(identity.kind), build_key(identity)


def _list_own_identities(phone_number: str | None, email: str | None) -> list[Identity]:
    own = [(PHONE.name, phone_number), (EMAIL.name, email)]
    return [Identity(kind, value) for kind, value in own if value]


def _list_channel_identities(source: Source, identities: Sequence[Identity]) -> list[Identity]:
    """Those by which the channel knows the person."""
    return [identity for identity in dict.fromkeys(map(canonical, identities)) if identity.kind in _KINDS[source]]


def _split_contact(to: Identity) -> tuple[list[str], str | None]:
    """The forms of the recipient in which a customer may have it."""
    identity = canonical(to)
    if identity.kind == PHONE.name:
        return list_spellings(identity.value), None
    return [], identity.value if identity.kind == EMAIL.name else None
