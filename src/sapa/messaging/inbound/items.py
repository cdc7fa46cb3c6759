"""Processes the items of a callback, each by its kind."""

from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby

import structlog

from sapa.db.connection import DatabaseAway
from sapa.db.pool import BUSY, RETRYABLE, Tx
from sapa.messaging.channel_events import actions as channel_events
from sapa.messaging.channel_status import actions as channel_status
from sapa.messaging.channels.account_reports import AccountReport
from sapa.messaging.channels.interface import (
    ChannelNotice,
    Item,
    MessageAmendment,
    NumberChanged,
    ReceivedItem,
    StatusReport,
)
from sapa.messaging.channels.template_verdicts import TemplateVerdict
from sapa.messaging.contacts import actions as contacts
from sapa.messaging.inbound import actions
from sapa.messaging.inbound.actions import CallbackContext
from sapa.messaging.inbound.parser_process import describe
from sapa.messaging.messages import actions as messages
from sapa.messaging.templates import actions as templates

ProcessItems = Callable[[Tx, CallbackContext, Sequence[Item], bool], Awaitable[tuple[bool, str | None]]]

log = structlog.get_logger()


async def process_together(
    tx: Tx, callback_context: CallbackContext, items: Sequence[Item], is_last_try: bool
) -> tuple[bool, str | None]:
    """Like `process_each`; a failing item raises, and statuses that follow each other are applied together."""
    company, source = callback_context.company, callback_context.connected.connection.source
    is_early = False
    for kind, group in groupby(items, type):
        if kind is StatusReport:
            reports = [item for item in group if isinstance(item, StatusReport)]
            is_early |= any(await messages.receive_reports(tx, company, source, reports, callback_context.now))
        else:
            for item in group:
                is_early |= await _process_item(tx, callback_context, item, is_last_try)
    return is_early, None


async def process_each(
    tx: Tx, callback_context: CallbackContext, items: Sequence[Item], is_last_try: bool
) -> tuple[bool, str | None]:
    """Whether some items came too early, and the last error. A failing item does not block the others."""
    is_early, error = False, None
    for item in items:
        try:
            async with tx.transaction():
                is_early |= await _process_item(tx, callback_context, item, is_last_try)
        except (DatabaseAway, *RETRYABLE, *BUSY):
            raise
        except Exception as failure:
            connection_id = callback_context.connected.connection.id
            log.exception("callback item failed", company_id=callback_context.company.id, connection_id=connection_id)
            error = describe(failure)
    return is_early, error


async def _process_item(tx: Tx, callback_context: CallbackContext, item: Item, is_last_try: bool) -> bool:
    """Whether it came too early: it may refer to a message that is not stored yet."""
    company, source = callback_context.company, callback_context.connected.connection.source
    match item:
        case StatusReport():
            [is_early] = await messages.receive_reports(tx, company, source, [item], callback_context.now)
            return is_early
        case ReceivedItem():
            return await actions.receive_item(tx, callback_context, item)
        case MessageAmendment():
            return await actions.receive_amendment(tx, callback_context, item, is_last_try=is_last_try)
        case NumberChanged():
            await contacts.change_number(tx, company, item)
        case TemplateVerdict():
            await templates.apply_verdict(tx, company, item)
        case ChannelNotice():
            await channel_events.record(tx, company, source, callback_context.connected.connection.id, item)
        case AccountReport():
            await channel_status.receive(tx, company, callback_context.connected, item, callback_context.now)
    return False
