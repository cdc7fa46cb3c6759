"""Notifies customers of the steps of their parcels: queued with the change, sent by the worker, each step once."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta

import msgspec
from msgspec import Raw, Struct

from sapa.access.actions import get_environment, read_clock
from sapa.context import AppContext
from sapa.customers import actions as customers
from sapa.customers.types import CustomerRef
from sapa.db.pool import Connection, Tx
from sapa.http.errors import ApiError, Invalid
from sapa.messaging.channels.interface import BadIdentity, Identity, Source
from sapa.messaging.channels.registry import CHANNELS, find_source
from sapa.messaging.contacts import actions as contacts
from sapa.messaging.sending import actions as sending
from sapa.messaging.sending.types import TemplateMessageIn
from sapa.notifications import queries
from sapa.notifications.content import build_params, choose_addresses, find_step, is_current
from sapa.notifications.types import (
    DueNotification,
    NotificationRule,
    NotificationSettings,
    NotificationSettingsIn,
    ShipmentNotification,
)
from sapa.orders import actions as orders
from sapa.shipping.areas.actions import with_area_names
from sapa.shipping.events import ShipmentStatusChanged
from sapa.shipping.shipments import actions as shipments
from sapa.shipping.types import NO_PARTY, read_party
from sapa.values.company import Company
from sapa.values.json import encode

NEWS = timedelta(hours=12)
"""A step that was taken longer ago is no news."""
LEASE_SECONDS = 300.0
"""Longer than a send takes; then its worker is gone."""
MAX_TRIES = 4
RETRY_SECONDS = 60.0

_NO_SETTINGS = NotificationSettings(enabled=False, rules=Raw(b"[]"), updated_at=None)
_read_rules = msgspec.json.Decoder(list[NotificationRule]).decode
_read_customer = msgspec.json.Decoder(CustomerRef).decode


class NotificationSkipped(Exception):
    """There is a reason not to send it."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Recipient(Struct, frozen=True):
    """Who is notified."""

    phone: str | None
    email: str | None
    identities: Sequence[Identity] = ()
    """Ids of channels that the customer wrote over."""


async def get_settings(db: Connection, company: Company) -> NotificationSettings:
    return await queries.find_settings(db, company.id) or _NO_SETTINGS


async def save_settings(tx: Tx, company: Company, body: NotificationSettingsIn) -> NotificationSettings:
    """Raises Invalid for a second rule of a step, and like a send for a template that does not fit its parameters."""
    seen: set[str] = set()
    for number, rule in enumerate(body.rules):
        if rule.step in seen:
            raise Invalid.field(f"rules[{number}].step", f"{rule.step} has a rule already; send one for each step")
        seen.add(rule.step)
        _parse_sources(f"rules[{number}].sources", rule)
        await sending.check_template(tx, company, _build_message(rule, "+628123456789", None, list(rule.params), None))
    now = (await read_clock(tx, company.id)).real
    return await queries.save_settings(tx, company.id, body.enabled, encode(body.rules), now)


async def list_notifications(db: Connection, company: Company, shipment_id: str) -> list[ShipmentNotification]:
    """Raises ShipmentNotFound."""
    await shipments.get_stored(db, company.id, shipment_id)
    return await queries.list_notifications(db, company.id, shipment_id)


async def queue_step(tx: Tx, company: Company, change: ShipmentStatusChanged) -> None:
    """Subscribes to changes of status: queues the step in the same transaction, if the company has a rule for it."""
    step = find_step(change.before.shipping_status, change.after.shipping_status)
    if step is None or change.after.return_of is not None or await _find_rule(tx, company, step) is None:
        return
    occurred_at = change.after.event_timestamp or (await read_clock(tx, company.id)).now
    await queries.insert(tx, company.id, change.after.id, step, occurred_at)


async def _find_rule(db: Connection, company: Company, step: str) -> NotificationRule | None:
    settings = await queries.find_settings(db, company.id)
    if settings is None or not settings.enabled:
        return None
    return next((rule for rule in _read_rules(settings.rules) if rule.step == step), None)


async def list_due(context: AppContext, most: int) -> list[DueNotification]:
    async with context.database.connection() as db:
        return await queries.list_due(db, most)


async def process(context: AppContext, company: Company, due: DueNotification) -> None:
    """Claims a notification, sends it once, and stores the outcome. What a dead worker was sending may have been sent,
    so it is not sent again."""
    if due.is_abandoned:
        await _settle(context, due, "unknown", "The worker ended while it sent the message.", None)
        return
    async with context.database.transaction() as tx:
        occurred_at = await queries.claim(tx, due, LEASE_SECONDS)
    if occurred_at is None:
        return
    try:
        async with context.database.connection() as db:
            message = await _prepare(context, db, company, due, occurred_at)
        sent = await sending.send_automatically(context, company, message)
    except NotificationSkipped as skip:
        await _settle(context, due, "skipped", str(skip), skip.code)
    except ApiError as error:
        await _settle_refusal(context, due, error)
    else:
        await _settle(context, due, "sent", None, None, sent.message_id2)


async def _settle(
    context: AppContext,
    due: DueNotification,
    status: str,
    reason: str | None,
    code: str | None,
    message_id: str | None = None,
) -> None:
    async with context.database.transaction() as tx:
        await queries.settle(tx, due, status, reason, code, message_id)


async def _settle_refusal(context: AppContext, due: DueNotification, error: ApiError) -> None:
    """A busy channel is tried again. What we refuse before the channel is called is skipped, the rest has failed."""
    if error.status in {429, 503}:
        async with context.database.transaction() as tx:
            if await queries.postpone(tx, due, RETRY_SECONDS, error.message, error.code, MAX_TRIES):
                return
    await _settle(context, due, "failed" if error.status >= 500 else "skipped", error.message, error.code)


async def _prepare(
    context: AppContext, db: Connection, company: Company, due: DueNotification, occurred_at: datetime
) -> TemplateMessageIn:
    """The message. Raises NotificationSkipped."""
    rule = await _find_rule(db, company, due.step)
    if rule is None:
        raise NotificationSkipped("TURNED_OFF", "This step was turned off.")
    shipment = await shipments.get_stored(db, company.id, due.shipment_id)
    if not is_current(due.step, shipment.shipping_status):
        raise NotificationSkipped("OVERTAKEN", f"The parcel is {shipment.shipping_status} by now.")
    if (await read_clock(db, company.id)).now - occurred_at > NEWS:
        raise NotificationSkipped("STALE", "The carrier reported the step too late.")
    order = await orders.find(db, company, shipment.order_id) if shipment.order_id else None
    customer = None if order is None or order.customer is None else _read_customer(order.customer)
    recipient = await _load_recipient(db, company, *choose_addresses(shipment, customer), customer)
    shop = (await get_environment(db, company.id)).name
    receiver = NO_PARTY if shipment.delivery is None else read_party(shipment.delivery)
    receiver = await with_area_names(db, company, shipment, receiver)
    page = context.settings.server.address + (shipment.tracking_page or "")
    params = build_params(rule, shipment, receiver, shop, order.order_number if order else None, page)
    to, source = _choose_address(rule, recipient, company.region)
    return _build_message(rule, to, source, params, {"shipmentId": shipment.id, "step": due.step})


async def _load_recipient(
    db: Connection, company: Company, phone: str | None, email: str | None, customer: CustomerRef | None
) -> Recipient:
    if customer is not None:
        known = await customers.find_customer(db, company, customer.id)
    else:
        known = await customers.find_by_contact(db, company, [phone] if phone else [], email)
    if known is None:
        return Recipient(phone, email)
    return Recipient(phone, email, await contacts.list_customer_identities(db, company, known.id))


def _choose_address(rule: NotificationRule, recipient: Recipient, region: str) -> tuple[str, Source | None]:
    """The first of the rule's channels that the customer has an address for."""
    sources = _parse_sources("sources", rule)
    for source in sources:
        if address := _find_address(source, recipient, region):
            return address, source
    address = None if sources else recipient.phone or recipient.email
    if address is None:
        raise NotificationSkipped("NO_ADDRESS", "There is no phone number or e-mail address for the chosen channels.")
    return address, None


def _find_address(source: Source, recipient: Recipient, region: str) -> str | None:
    """The phone number or e-mail address if the channel takes it, else the customer's id there."""
    known = {identity.kind: identity.value for identity in recipient.identities}
    for kind in CHANNELS[source].capabilities.identities:
        if not kind.has_distinct_format and kind.name in known:
            return known[kind.name]
        for address in filter(None, (recipient.phone, recipient.email) if kind.has_distinct_format else ()):
            with suppress(BadIdentity):
                return kind.parse(address, region)
    return None


def _parse_sources(field: str, rule: NotificationRule) -> list[Source]:
    names = [rule.sources] if isinstance(rule.sources, str) else rule.sources or []
    found = []
    for name in names:
        source = find_source(name)
        if source is None:
            raise Invalid.field(field, f"must be one of {', '.join(Source)}")
        found.append(source)
    return found


def _build_message(
    rule: NotificationRule, to: str, source: str | None, params: list[str], metadata: dict[str, str] | None
) -> TemplateMessageIn:
    return TemplateMessageIn(
        to=to,
        sources=source,
        template_name=rule.template_name,
        template_source=rule.template_source,
        language=rule.language,
        params=params,
        metadata=metadata,
    )
