"""What one send through the sandbox costs with its callbacks: sent, delivered and read, in all processes."""

import asyncio

import httpx
import psutil
from msgspec import Struct

from bench.api.load import Load, run_wrk
from bench.findings import Table, Verdict, at_most, spread
from bench.ground import Ground, SeededCompany
from bench.loyalty.owner import Connection, open_owner
from bench.messaging.numbers import SOURCE
from bench.say import say
from bench.servers import Server, cpu_seconds, run_sapa, run_worker
from sapa.access import actions
from sapa.access.types import MAX_RATE_LIMIT, KeyIn, Scope
from sapa.db.pool import open_database

RECIPIENTS = 100
SETTLED = "SELECT NOT EXISTS (SELECT FROM messages WHERE company_id = $1 AND direction = 'out' AND status <> 'read')"
TICKETS = "SELECT count(*) FROM tickets WHERE company_id = $1"


class SendCost(Struct, frozen=True):
    """CPU of one send, in milliseconds."""

    api_ms: float
    worker_ms: float
    postgres_ms: float

    @property
    def whole_ms(self) -> float:
        return self.api_ms + self.worker_ms + self.postgres_ms


async def measure_sandbox_sends(ground: Ground, rounds: int, seconds: int) -> dict[str, list[SendCost]]:
    """Without a ticket, and with an open one."""
    say(f"sends through the sandbox with their callbacks, {rounds} rounds")
    measured: dict[str, list[SendCost]] = {"without a ticket": [], "with an open ticket": []}
    async with run_sapa(ground) as api, run_worker(ground) as worker, open_owner(ground) as db:
        for title, costs in measured.items():
            company = await _make_test_company(ground, title)
            if title == "with an open ticket":
                await _open_tickets(api, db, company)
            load = Load(company.key, _build_sends(), seconds)
            await _measure(ground, api, worker, db, company, load)
            await db.execute("ANALYZE")  # as PostgreSQL does by itself within a minute
            costs += [await _measure(ground, api, worker, db, company, load) for _ in range(rounds)]
    return measured


def judge_sandbox_sends(measured: dict[str, list[SendCost]]) -> list[Verdict]:
    budgets = {"without a ticket": 6, "with an open ticket": 9}
    return [
        at_most(
            budgets[title],
            " ms",
            f"CPU of a send through the sandbox, {title}",
            spread([one.whole_ms for one in costs]),
        )
        for title, costs in measured.items()
    ]


def build_costs_table(measured: dict[str, list[SendCost]]) -> Table:
    fields = ("api_ms", "worker_ms", "postgres_ms", "whole_ms")
    rows = [
        [title, *(f"{spread([getattr(one, name) for one in costs]).median:.2f}" for name in fields)]
        for title, costs in measured.items()
    ]
    return Table(["CPU of one send with its callbacks", "API, ms", "worker, ms", "PostgreSQL, ms", "all, ms"], rows)


async def _measure(
    ground: Ground, api: Server, worker: psutil.Process, db: Connection, company: SeededCompany, load: Load
) -> SendCost:
    """From the first send until the last message is read."""
    processes = [api.process, worker, ground.postgres]
    before = [cpu_seconds(process) for process in processes]
    counted = await run_wrk(api, load, ground.folder)
    while not await db.fetchval(SETTLED, company.id):  # noqa: ASYNC110 - asks PostgreSQL
        await asyncio.sleep(0.2)
    spent = [cpu_seconds(process) - start for process, start in zip(processes, before, strict=True)]
    return SendCost(*(seconds * 1000 / counted.requests for seconds in spent))


async def _make_test_company(ground: Ground, name: str) -> SeededCompany:
    async with open_database(ground.app_url) as database, database.transaction() as tx:
        made = await actions.create_company(tx, name)
        body = KeyIn(name="benchmark", scopes=list(Scope), rate_limit=MAX_RATE_LIMIT)
        key = await actions.create_key(tx, made.test_company_id, body)
    return SeededCompany(made.test_company_id, key.key)


async def _open_tickets(api: Server, db: Connection, company: SeededCompany) -> None:
    """Every recipient writes once."""
    async with httpx.AsyncClient(base_url=api.address, headers={"x-api-key": company.key}) as client:
        for number in range(RECIPIENTS):
            body = {"source": SOURCE, "from": _name_recipient(number), "text": "Halo"}
            (await client.post("/messaging/v1/sandbox/inbound", json=body)).raise_for_status()
    while await db.fetchval(TICKETS, company.id) < RECIPIENTS:  # noqa: ASYNC110 - asks PostgreSQL
        await asyncio.sleep(0.2)


def _build_sends() -> list[str]:
    body = '{{"to":"{to}","sources":"{source}","message":"Halo, pesanan # sudah dikirim."}}'
    return [
        f"POST /messaging/v1/messages/send {body.format(to=_name_recipient(number), source=SOURCE)}"
        for number in range(RECIPIENTS)
    ]


def _name_recipient(number: int) -> str:
    return f"+62812{number:07d}"
