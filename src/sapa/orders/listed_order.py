"""An order of a list as JSON, most of which the database writes: a page of twenty orders is then sixty values to read
instead of six hundred."""

import msgspec
from msgspec import Raw, Struct

from sapa.orders.columns import COMPUTED
from sapa.orders.types import Order

INSTANTS = ("created_at", "updated_at")
"""The last fields. PostgreSQL would take longer to format them than to write the others together."""

_OWN_WORDS = {"id", "order_number", "status", "fulfillment_status", "financial_status", "currency"}
"""Texts of ours, which have no characters to escape."""

_WRITERS = {
    "order_id": "to_json({})",
    "notes": "coalesce(to_json({})::text, 'null')",
    "customer": "coalesce({}::text, 'null')",
    "shipping_address": "coalesce({}::text, 'null')",
    "tags": "array_to_json({})",
}
"""How fields are written that can be null or need escaping; the others are numbers and JSON."""


class ListedOrder(Struct, frozen=True):
    """The order's JSON without its end."""

    beginning: str
    created_at: str
    updated_at: str

    def to_json(self) -> Raw:
        return Raw(f'{self.beginning},"createdAt":"{self.created_at}","updatedAt":"{self.updated_at}"}}')


def _build_beginning() -> str:
    """SQL that writes the fields of `orders AS r` up to the instants."""
    fields = [field for field in msgspec.structs.fields(Order) if field.name not in INSTANTS]
    members = [f'"{field.encode_name}":' + ('"%s"' if field.name in _OWN_WORDS else "%s") for field in fields]
    values = [_WRITERS.get(field.name, "{}").format(COMPUTED.get(field.name, f"r.{field.name}")) for field in fields]
    return f"format('{{{','.join(members)}', {', '.join(values)})"


BEGINNING = _build_beginning()
