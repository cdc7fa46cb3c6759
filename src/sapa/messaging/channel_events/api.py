"""Endpoints for events of channels."""

from typing import Annotated

from msgspec import Meta

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import NotFound
from sapa.http.query_string import PageQuery
from sapa.http.responses import Page, build_page
from sapa.messaging.channel_events import queries
from sapa.messaging.channel_events.types import ChannelEvent, ChannelEventId
from sapa.messaging.channels.interface import NoticeKind, Source
from sapa.messaging.contacts.types import CONTACT_ID
from sapa.values.enum_names import words_of

routes = Routes(
    "/channel-events",
    base=Base.MESSAGING,
    tag="Channel events",
    about="What channels report besides messages and their status: preferences, errors, referrals, unknown kinds.",
)

KINDS: tuple[NoticeKind, ...] = words_of(NoticeKind)


class ChannelEventsQuery(PageQuery, frozen=True, kw_only=True, rename="camel"):
    """Which events to list."""

    source: Annotated[Source, Meta(description="Only events of this channel.")] | None = None
    kind: Annotated[NoticeKind, Meta(description="Only events of this kind.")] | None = None
    contact_id: Annotated[str, Meta(pattern=CONTACT_ID.pattern, description="Only events of this person.")] | None = (
        None
    )


@routes.get("", scope=Scope.MESSAGES_READ)
async def list_channel_events(call: Call, query: ChannelEventsQuery) -> Page[ChannelEvent]:
    """List events, newest first."""
    filters = {"cells": _cells(query), "contact_id": query.contact_id}
    chosen = {name: value for name, value in filters.items() if value is not None}
    found, total = await queries.list_events(call.db, call.company.id, chosen, query.limit, query.offset)
    return build_page(found, query.page, query.limit, total)


def _cells(query: ChannelEventsQuery) -> list[str] | None:
    if query.source is None and query.kind is None:
        return None
    sources = [query.source] if query.source else list(Source)
    kinds = [query.kind] if query.kind else KINDS
    return [f"{source}/{kind}" for source in sources for kind in kinds]


@routes.get("/{id}", scope=Scope.MESSAGES_READ, raises=[NotFound])
async def get_channel_event(call: Call, id: ChannelEventId) -> ChannelEvent:
    """Get one event."""
    return await queries.get_event(call.db, call.company.id, id)
