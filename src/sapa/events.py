"""Events: what the product announces, recorded in the transaction that made the change."""

from typing import Any, ClassVar

import msgspec

from sapa.company import Company
from sapa.db.pool import Tx
from sapa.db.sql import sql
from sapa.ids import IdKind

EVENT_ID = IdKind("evt_")

INSERT = sql(
    """
    INSERT INTO events (company_id, id, kind, resource_id, body)
    VALUES ($1, $2, $3, $4, $5)"""
)

_encode = msgspec.json.Encoder().encode


class Event:
    """One kind of event. A subclass is the whole declaration: kind, body's type, and a docstring for the catalogue."""

    kind: ClassVar[str]
    resource_type: ClassVar[type[msgspec.Struct]]

    def __init__(self, resource: Any) -> None:
        self.resource = resource

    def __init_subclass__(cls) -> None:
        CATALOGUE[cls.kind] = cls


CATALOGUE: dict[str, type[Event]] = {}
"""Every event kind, for the reference, the console and webhook subscriptions."""


async def emit(tx: Tx, company: Company, event: Event) -> None:
    """Records the event with the exact bytes that receivers will get."""
    await INSERT.run(tx, company.id, EVENT_ID.new(), event.kind, event.resource.id, _encode(event.resource))
