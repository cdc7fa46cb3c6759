"""The ceiling: the least Python that answers the same rows, with Sapa's own statements and nothing around them.

No key, no rate limit, no request id, no log, no metrics, no validation. The company stands in the path. A write is a
transaction of three statements: the customer or the order's lock, the order with its number, counter and history, and
its event. It has nothing that other domains add to it.
"""

import os
from collections.abc import Awaitable, Callable
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import msgspec
from msgspec import Raw, Struct

from sapa import events
from sapa.customers import api as customers_api
from sapa.customers import queries as customers
from sapa.customers.types import Customer, CustomerRef
from sapa.db.pool import Connection, Database
from sapa.db.sql import compose
from sapa.events import EVENT_ID
from sapa.http.query_string import QueryReader
from sapa.http.responses import build_page
from sapa.orders import api as orders_api
from sapa.orders import queries as orders
from sapa.orders.announcements import build_placed, build_revised
from sapa.orders.columns import PLAIN, REVISED, STATE
from sapa.orders.document import NewOrder, build_customer_text
from sapa.orders.history.types import HISTORY_ID, FieldChange
from sapa.orders.listed_order import ListedOrder
from sapa.orders.pricing.arithmetic import build_plain_order
from sapa.orders.pricing.types import LINE_ITEM_ID, LineItem
from sapa.orders.revision import revision_of
from sapa.orders.transitions import begin
from sapa.orders.types import (
    ORDER_ID,
    LineItemIn,
    Order,
    OrderCreated,
    OrderIn,
    OrderPatch,
    OrderUpdated,
)
from sapa.values.change_actor import SYSTEM
from sapa.values.json import encode

# As Sapa stores an order, and without what its own statement adds to that: the event and the timeline.
INSERT = compose(
    orders.build_insert_parts(PLAIN), "SELECT order_number, created_at, updated_at FROM stored", row=Struct
)
UPDATE = compose(orders.build_update_parts(STATE, REVISED), "SELECT updated_at FROM stored", row=Struct)

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

decode_order = msgspec.json.Decoder(OrderIn).decode
decode_patch = msgspec.json.Decoder(OrderPatch).decode


def build_listed(*row: Any) -> Raw:
    return ListedOrder(*row).to_json()


class Resource(Struct, frozen=True):
    row: Any
    get: str
    build_item: Callable[..., Any]
    """From the columns of a list."""
    list: Callable[..., Awaitable[Any]]
    read_query: Callable[[bytes], Any]


RESOURCES = {
    "orders": Resource(
        Order, orders.GET.text, build_listed, orders_api.list_orders, QueryReader(orders_api.OrdersQuery).read
    ),
    "customers": Resource(
        Customer, customers.GET.text, Customer, customers_api.list_customers,
        QueryReader(customers_api.CustomersQuery).read,
    ),
}  # fmt: skip


class Recorder:
    """Lets Sapa read a list once, and notes its statements: the ceiling repeats them, whatever they are."""

    def __init__(self, db: Connection, query: Any) -> None:
        self._db = db
        self.query = query
        self.total: tuple[Any, ...] = ()
        self.page: tuple[Any, ...] = ()

    async def fetchval(self, *asked: Any) -> Any:
        self.total = asked
        return await self._db.fetchval(*asked)

    async def fetch(self, *asked: Any, timeout: float | None = None) -> Any:  # noqa: ASYNC109 - asyncpg's own
        self.page = asked
        return await self._db.fetch(*asked)


class Ceiling:
    """`/{company}/{resource}`, `…/{id}`, `…?page=N&search=two+words`; of orders POST and PUT, too."""

    pool: Database
    """Sapa's own, so that the difference between the two is what Sapa does."""

    def __init__(self) -> None:
        self._lists: dict[tuple[str, str, bytes], Recorder] = {}

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._live(receive, send)
        _, company, resource, *rest = scope["path"].split("/")
        if scope["method"] == "POST":
            return await answer(send, 201, await self._create(int(company), (await receive())["body"]))
        if scope["method"] == "PUT":
            return await answer(send, 200, await self._update(int(company), rest[0], (await receive())["body"]))
        if rest:
            return await answer(send, 200, await self._get(int(company), RESOURCES[resource], rest[0]))
        return await answer(send, 200, await self._list(company, resource, scope["query_string"]))

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        size = int(os.environ["SAPA_DATABASE_POOL"])
        self.pool = Database(os.environ["SAPA_DATABASE_URL"], size)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.pool.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _get(self, company: int, resource: Resource, id: str) -> bytes:
        async with self.pool.connection() as db:
            row: Any = await db.fetchrow(resource.get, company, id)
        return b'{"data":' + encode(resource.row(*row)) + b"}"

    async def _list(self, company: str, name: str, query: bytes) -> bytes:
        resource = RESOURCES[name]
        async with self.pool.connection() as db:
            known = self._lists.get((company, name, query))
            if known is None:
                known = self._lists[company, name, query] = await record(db, int(company), resource, query)
            total = await db.fetchval(*known.total) if known.total else None
            rows: Any = await db.fetch(*known.page)
        if total is None or isinstance(total, bool):  # a filtered list brings it with the rows, before their columns
            total, rows = rows[0][0], [row[1:] for row in rows]
        items = [resource.build_item(*row) for row in rows]
        return encode(build_page(items, known.query.page, known.query.limit, int(total)))

    async def _create(self, company: int, body: bytes) -> bytes:
        given = decode_order(body)
        lines = [build_line(one) for one in given.line_items]
        draft = NewOrder(None, "IDR", None, build_plain_order("IDR", lines), None, [])
        async with self.pool.transaction() as leased:
            db: Any = leased
            ref = CustomerRef(*await db.fetchrow(customers.SHARE.text, company, given.customer_id))
            order = build_placed(ORDER_ID.new(), draft, begin(draft), ref)
            values = msgspec.structs.asdict(order) | {
                "customer_id": ref.id, "customer_text": build_customer_text(ref), "taken": b"{}", "placed_at": None,
                "placed_by": encode(SYSTEM),
            }  # fmt: skip
            row = await db.fetchrow(INSERT.text, company, *INSERT.order(values))
            made = encode(msgspec.structs.replace(order, order_number=row[0], created_at=row[1], updated_at=row[2]))
            await db.fetch(events.RECORD.text, company, [EVENT_ID.new()], [OrderCreated.kind], [order.id], [made])
        return b'{"data":' + made + b"}"

    async def _update(self, company: int, id: str, body: bytes) -> bytes:
        patch = decode_patch(body)
        async with self.pool.transaction() as leased:
            db: Any = leased
            stored = await orders.lock_order(db, company, id)
            now = revision_of(stored)
            after = msgspec.structs.replace(now, notes=patch.notes)
            values = STATE.name_values("", after.state) | REVISED.name_values("", after) | {
                "id": id, "left_cell": now.state.cell, "taken": encode(after.taken), "history_id": HISTORY_ID.new(),
                "action": "updated", "actor": encode(SYSTEM), "reference": None,
                "changes": encode([FieldChange("notes", now.notes, after.notes)]),
            }  # fmt: skip
            updated_at = await db.fetchval(UPDATE.text, company, *UPDATE.order(values))
            changed = encode(msgspec.structs.replace(build_revised(stored, now, after), updated_at=updated_at))
            await db.fetch(events.RECORD.text, company, [EVENT_ID.new()], [OrderUpdated.kind], [id], [changed])
        return b'{"data":' + changed + b"}"


def build_line(given: LineItemIn) -> LineItem:
    price, nothing = given.price or Decimal(0), Decimal(0)
    total = price * given.quantity
    return LineItem(
        LINE_ITEM_ID.new(), given.quantity, price, given.title or "", None, None, total, nothing, nothing, total, 0, 0
    )


async def record(db: Connection, company: int, resource: Resource, query: bytes) -> Recorder:
    recorder = Recorder(db, resource.read_query(query))
    await resource.list(SimpleNamespace(db=recorder, company=SimpleNamespace(id=company)), recorder.query)
    return recorder


async def answer(send: Send, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


app = Ceiling()
