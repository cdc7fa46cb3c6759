"""The least Python that does the same: Sapa's own statements, the same call to the carrier, and nothing around them.

No key, no rate limit, no checks of what is asked. The company stands in the path.
"""

import os
from typing import Any

import aiohttp
import msgspec

from bench.ceiling.app import Ceiling, Receive, Send, answer
from sapa import events
from sapa.events import EVENT_ID
from sapa.shipping.areas import queries as areas
from sapa.shipping.areas.actions import MAX_AGE_DAYS
from sapa.shipping.carriers.kiriminaja import wire
from sapa.shipping.environment import LIVE
from sapa.shipping.events import ShipmentCreated
from sapa.shipping.quotes import queries as quotes
from sapa.shipping.quotes.types import QuoteAnswer, QuoteResult
from sapa.shipping.shipments import queries as shipments
from sapa.shipping.shipments.validation import build_draft, merge
from sapa.shipping.types import ShipmentIn
from sapa.values.company import Company
from sapa.values.json import encode

CARRIER = os.environ.get("SAPA_UPSTREAM_KIRIMINAJA", "")
SOME_JOURNEY = "SELECT journey FROM quote_cache WHERE company_id = $1 LIMIT 1"

_WRITTEN = shipments.WRITTEN
INSERT = f"""
    WITH counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        VALUES ($1, 'shipments', ${len(_WRITTEN.names) + 3}, 1))
    INSERT INTO shipments (company_id, id, {_WRITTEN.listed}, created_at, updated_at)
    VALUES ($1, $2, {_WRITTEN.numbered(3)}, clock_timestamp(), clock_timestamp())
    RETURNING created_at, updated_at"""

decode_shipment = msgspec.json.Decoder(ShipmentIn).decode
decode_quote = msgspec.json.Decoder(QuoteResult).decode
decode_prices = msgspec.json.Decoder(wire.Prices, strict=False).decode


class ShippingCeiling(Ceiling):
    """`/{company}/known`, `/{company}/asked`, `/{company}/coverage`, `/{company}/shipments`."""

    def __init__(self) -> None:
        super().__init__()
        self._session: aiohttp.ClientSession | None = None
        self._journey: bytes | None = None

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._live(receive, send)
        _, company, what, *_ = scope["path"].split("/")
        if what == "coverage":
            return await answer(send, 200, await self._find_areas(int(company)))
        body = (await receive())["body"]
        if what == "shipments":
            return await answer(send, 201, await self._create_shipment(int(company), body))
        return await answer(send, 200, await (self._find_quote if what == "known" else self._ask)(int(company)))

    async def _find_areas(self, company: int) -> bytes:
        asked = (company, "kiriminaja", "provinces", "", LIVE.coverage_days, MAX_AGE_DAYS)
        async with self.pool.connection() as db:
            row: Any = await db.fetchrow(areas.FIND_CACHED.text, *asked)
        return b'{"data":' + bytes(row[0]) + b"}"

    async def _find_quote(self, company: int) -> bytes:
        async with self.pool.connection() as db:
            if self._journey is None:
                self._journey = await db.fetchval(SOME_JOURNEY, company)
            known = decode_quote(await db.fetchval(quotes.FIND.text, company, self._journey))
        return encode(QuoteAnswer(known, known.options))

    async def _ask(self, company: int) -> bytes:
        if self._session is None:
            self._session = aiohttp.ClientSession(CARRIER, connector=aiohttp.TCPConnector(limit=0))
        async with self._session.post(wire.PRICE, data=b"{}") as told:
            prices = encode(decode_prices(await told.read()))
        async with self.pool.connection() as db:
            await db.execute(quotes.SAVE.text, company, [os.urandom(32)], [prices.decode()], [30])
        return prices

    async def _create_shipment(self, company_id: int, body: bytes) -> bytes:
        given, company = decode_shipment(body), Company(company_id, "live", "ID", "IDR")
        kept = merge(company, build_draft(company, given.provider), given, None)
        async with self.pool.transaction() as leased:
            db: Any = leased
            created_at, updated_at = await db.fetchrow(
                INSERT, company_id, kept.id, *_WRITTEN.values(kept), f"{kept.provider}/{kept.shipping_status}"
            )
            made = msgspec.structs.replace(kept.shipment, created_at=created_at, updated_at=updated_at)
            content = encode(made)
            await db.fetch(
                events.RECORD.text, company_id, [EVENT_ID.new()], [ShipmentCreated.kind], [made.id], [content]
            )
        return b'{"data":' + content + b"}"


app = ShippingCeiling()
