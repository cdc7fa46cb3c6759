"""Statuses that a channel reports, settled per second, beside a bare process that verifies, parses and upserts them.

Both get the same signed callbacks over HTTP. Sapa has settled a status when its message has it, with its event.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

import aiohttp
import psutil
from msgspec import Struct

from bench.findings import Spread, Table, Verdict, at_least, ratios, spread
from bench.ground import Ground
from bench.loyalty.owner import Connection, open_owner
from bench.messaging.bare_statuses import TABLE
from bench.messaging.numbers import ConnectedNumber, build_statuses, connect_number, sign
from bench.say import say
from bench.servers import Server, cpu_seconds, free_port, run_sapa, run_server, run_worker

BATCHES = (1, 50)
"""Statuses of one callback."""
CALLERS = 16

# Messages that their channel accepted.
STORE_SENT = """
    INSERT INTO messages (company_id, id, direction, source, connection_id, identity_kind, identity, client_number,
                          connected_number, provider_id, type, body, feature_source, status, sequence, created_at,
                          accepted_at, sent_at)
    SELECT $1, gen_random_uuid(), 'out', 'MSGAPP_CLOUD', $2, 'phone', '+628123456789', '+628123456789',
           '+622150001234', id, 'text', 'Halo Ayu, pesanan INV-1042 sudah dikirim.', 'API', 'sent', 1, now(), now(),
           now()
      FROM unnest($3::text[]) AS id"""

# Cheap to ask again and again: a callback is done in the transaction that settles its statuses.
ARE_DONE = "SELECT NOT EXISTS (SELECT FROM channel_callbacks WHERE company_id = $1 AND status = 'waiting')"

ARE_DELIVERED = """
    SELECT count(*) = cardinality($2::text[])
      FROM messages
     WHERE company_id = $1 AND source = 'MSGAPP_CLOUD' AND provider_id = ANY ($2) AND status = 'delivered'"""


class StatusPace(Struct, frozen=True):
    """One round of one server."""

    per_second: float
    cpu_us: float
    """CPU of one status in all processes, PostgreSQL included, in microseconds."""


class StatusRounds(Struct, frozen=True):
    batch: int
    bare: list[StatusPace]
    sapa: list[StatusPace]


async def measure_statuses(ground: Ground, rounds: int, callbacks: int) -> list[StatusRounds]:
    """Each round has so many callbacks."""
    say(f"statuses that a channel reports, {rounds} rounds")
    number = await connect_number(ground, "Reported")
    measured = [StatusRounds(batch, [], []) for batch in BATCHES]
    async with open_owner(ground) as db:
        await db.execute(TABLE)
        async with _run_bare(ground) as bare, run_sapa(ground) as sapa, run_worker(ground) as worker:
            for turn in range(rounds + 1):
                for each in measured:
                    ids = [f"wamid.{turn}-{each.batch}-{n}" for n in range(callbacks * each.batch)]
                    bodies = [
                        build_statuses(ids[n : n + each.batch], "delivered") for n in range(0, len(ids), each.batch)
                    ]
                    bare_pace = await _measure_bare(ground, bare, bodies, len(ids))
                    sapa_pace = await _measure_sapa(ground, db, number, [sapa.process, worker], sapa, bodies, ids)
                    if turn:  # the first one warms up
                        each.bare.append(bare_pace)
                        each.sapa.append(sapa_pace)
    return measured


def judge_statuses(measured: Sequence[StatusRounds]) -> list[Verdict]:
    return [
        at_least(0.5, "×", f"statuses settled per second, {each.batch} in a callback", _ratio(each))
        for each in measured
    ]


def build_statuses_table(measured: Sequence[StatusRounds]) -> Table:
    rows = []
    for each in measured:
        for name, paces in (("bare", each.bare), ("sapa", each.sapa)):
            speed, cpu = spread([one.per_second for one in paces]), spread([one.cpu_us for one in paces])
            ratio = f"{_ratio(each).median:.3f} ×" if name == "sapa" else "1.000 ×"
            rows.append([str(each.batch), name, f"{speed.median:,.0f}", f"{cpu.median:,.0f}", ratio])
    return Table(["statuses in a callback", "server", "statuses/s", "CPU of all, µs", "ratio"], rows, words=2)


def _ratio(each: StatusRounds) -> Spread:
    return ratios([one.per_second for one in each.sapa], [one.per_second for one in each.bare])


async def _measure_bare(ground: Ground, bare: Server, bodies: Sequence[bytes], statuses: int) -> StatusPace:
    processes = [bare.process, ground.postgres]
    before, started = sum(map(cpu_seconds, processes)), time.monotonic()
    await _post(bare.address + "/", bodies)
    return _build_pace(processes, before, started, statuses)


async def _measure_sapa(
    ground: Ground,
    db: Connection,
    number: ConnectedNumber,
    processes: Sequence[psutil.Process],
    sapa: Server,
    bodies: Sequence[bytes],
    ids: Sequence[str],
) -> StatusPace:
    processes = [*processes, ground.postgres]
    await db.execute(STORE_SENT, number.company.id, number.connection_id, ids)
    await db.execute("ANALYZE messages")
    before, started = sum(map(cpu_seconds, processes)), time.monotonic()
    await _post(sapa.address + number.hook, bodies)
    while not await db.fetchval(ARE_DONE, number.company.id):  # noqa: ASYNC110 - asks PostgreSQL
        await asyncio.sleep(0.01)
    pace = _build_pace(processes, before, started, len(ids))
    if not await db.fetchval(ARE_DELIVERED, number.company.id, ids):
        raise RuntimeError("a callback was done before its statuses were settled")
    return pace


def _build_pace(processes: Sequence[psutil.Process], before: float, started: float, statuses: int) -> StatusPace:
    seconds = time.monotonic() - started
    return StatusPace(statuses / seconds, (sum(map(cpu_seconds, processes)) - before) / statuses * 1e6)


async def _post(url: str, bodies: Sequence[bytes]) -> None:
    """All of them, some at a time."""
    left = iter(bodies)
    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*(_post_each(session, url, left) for _ in range(CALLERS)))


async def _post_each(session: aiohttp.ClientSession, url: str, bodies: Iterator[bytes]) -> None:
    for body in bodies:
        async with session.post(url, data=body, headers=sign(body)) as answer:
            answer.raise_for_status()


@asynccontextmanager
async def _run_bare(ground: Ground) -> AsyncIterator[Server]:
    port, module = free_port(), ["bench.api.serve", "bench.messaging.bare_statuses"]
    async with run_server("bare-statuses", [*module, str(port)], port, ground) as server:
        yield server
