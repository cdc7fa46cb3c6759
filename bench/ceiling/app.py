"""The ceiling: the least Python that answers the same rows, with Sapa's own statements and nothing around them.

No key, no rate limit, no request id, no log, no metrics, no validation. The company stands in the path.
"""

import os
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import asyncpg
import msgspec

from sapa import events
from sapa.customers import queries
from sapa.customers.types import CUSTOMER_ID, Customer, CustomerCreated, CustomerIn
from sapa.db import codecs
from sapa.db.listing import contains
from sapa.events import EVENT_ID
from sapa.http.answers import build_page

LIMIT = 20
GET, INSERT = queries.GET.text, queries.INSERT.text

Leased: TypeAlias = "asyncpg.pool.PoolConnectionProxy[asyncpg.Record]"
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(CustomerIn).decode


class BareConnection(asyncpg.Connection):
    """Goes back to asyncpg's pool without its round trip that resets the session."""

    def get_reset_query(self) -> str:
        return ""


class Recorder:
    """Lets Sapa read a list once, and notes its statements: the ceiling repeats them, whatever they are."""

    def __init__(self, db: Leased) -> None:
        self._db = db
        self.total: tuple[Any, ...] = ()
        self.page: tuple[Any, ...] = ()

    async def fetchval(self, *asked: Any) -> Any:
        self.total = asked
        return await self._db.fetchval(*asked)

    async def fetch(self, *asked: Any) -> Any:
        self.page = asked
        return await self._db.fetch(*asked)


class Ceiling:
    """`/{company}/customers`, `…/{id}`, `…?page=N`, `…?search=two+words`, and POST."""

    pool: "asyncpg.Pool[asyncpg.Record]"

    def __init__(self) -> None:
        self._lists: dict[tuple[str, bytes], Recorder] = {}

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._live(receive, send)
        _, company, _, *rest = scope["path"].split("/")
        if scope["method"] == "POST":
            return await answer(send, 201, await self._create(int(company), (await receive())["body"]))
        if rest:
            return await answer(send, 200, await self._get(int(company), rest[0]))
        return await answer(send, 200, await self._list(company, scope["query_string"]))

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        size = int(os.environ["SAPA_DATABASE_POOL"])
        self.pool = await asyncpg.create_pool(
            os.environ["SAPA_DATABASE_URL"],
            min_size=size,
            max_size=size,
            connection_class=BareConnection,
            init=codecs.register,
            max_cached_statement_lifetime=0,
        )
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.pool.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _get(self, company: int, id: str) -> bytes:
        async with self.pool.acquire() as db:
            row: Any = await db.fetchrow(GET, company, id)
        return b'{"data":' + encode(Customer(*row)) + b"}"

    async def _list(self, company: str, query: bytes) -> bytes:
        name, _, value = query.decode().partition("=")
        page = int(value) if name == "page" else 1
        async with self.pool.acquire() as db:
            known = self._lists.get((company, query))
            if known is None:
                known = self._lists[company, query] = await record(db, int(company), name, value, page)
            total = await db.fetchval(*known.total) if known.total else None
            rows: Any = await db.fetch(*known.page)
        if total is None:  # a filtered list brings it with the rows, before the customer's own columns
            total, rows = rows[0][0], [row[1:] for row in rows]
        return encode(build_page([Customer(*row) for row in rows], page, LIMIT, int(total)))

    async def _create(self, company: int, body: bytes) -> bytes:
        given = decode(body)
        search_text = f"{given.first_name} {given.last_name}\n{given.email}\n".lower()
        async with self.pool.acquire() as db, db.transaction():
            row: Any = await db.fetchrow(
                INSERT, company, CUSTOMER_ID.new(), given.external_id, given.email, given.phone_number,
                given.first_name, given.last_name, given.image_url, given.tags, b"[]", b"{}", b"[]",
                given.email, search_text,
            )  # fmt: skip
            made = encode(Customer(*row))
            await db.execute(events.RECORD.text, company, [EVENT_ID.new()], [CustomerCreated.kind], [row[0]], [made])
        return b'{"data":' + made + b"}"


async def record(db: Leased, company: int, name: str, value: str, page: int) -> Recorder:
    recorder: Any = Recorder(db)
    filters = {"search": [contains(value.replace("+", " "))]} if name == "search" else {}
    await queries.list_customers(recorder, company, filters, "updatedAt:desc", LIMIT, (page - 1) * LIMIT)
    made: Recorder = recorder
    return made


async def answer(send: Send, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


app = Ceiling()
