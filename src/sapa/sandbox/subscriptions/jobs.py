"""Posts simulators' callbacks to subscribed addresses, in order within a company."""

import asyncio

import msgspec
import structlog

from sapa.context import AppContext
from sapa.outbound.client import NotSent, Unclear
from sapa.sandbox.subscriptions import actions, queries
from sapa.sandbox.subscriptions.queries import SubscribedDelivery
from sapa.work import leases
from sapa.work.loops import wait_for_due

PAUSE_SECONDS = 0.5
LEASE = "sandbox subscribers"
LEASE_SECONDS = 15.0
POST_SECONDS = 5.0
MAX_COMPANIES = 20
"""How many companies' callbacks are posted at once. Each waits for its own address only."""
BATCH = 20
MAX_TRIES = 20
MAX_PAUSE_SECONDS = 300.0

log = structlog.get_logger()


async def post_subscribed(context: AppContext, stopping: asyncio.Event) -> None:
    """Worker service: one worker posts at a time, so that callbacks arrive in order."""
    holder, running = leases.new_holder(), dict[int, asyncio.Task[None]]()
    with context.database.wakeups.open(actions.QUEUE, PAUSE_SECONDS) as wakeup:
        try:
            while not stopping.is_set():
                wakeup.begin()
                await _start(context, holder, running)
                await wait_for_due(wakeup, running, stopping)
        finally:
            if running:
                await asyncio.wait(running.values())
    async with context.database.connection() as db:
        await leases.release_all(db, holder)


async def _start(context: AppContext, holder: str, running: dict[int, asyncio.Task[None]]) -> None:
    """Starts the companies that have something due, as far as there is room. While nothing is due, one look is all."""
    async with context.database.connection() as db:
        room = MAX_COMPANIES - len(running)
        waiting = await queries.list_waiting(db, list(running), room) if room else []
        if (waiting or running) and await leases.take(db, LEASE, holder, LEASE_SECONDS) is None:
            return
    for company_id in waiting:
        running[company_id] = asyncio.create_task(_post_company(context, company_id))


async def _post_company(context: AppContext, company_id: int) -> None:
    """Up to a batch; an address that does not accept one is not tried again at once."""
    async with context.database.connection() as db:
        due = await queries.list_due(db, company_id, BATCH)
    for delivery in due:
        is_accepted = await _post(context, company_id, delivery)
        async with context.database.connection() as db:
            if is_accepted or delivery.tries + 1 >= MAX_TRIES:
                await queries.settle(db, company_id, delivery.id)
            else:
                pause = min(2.0**delivery.tries, MAX_PAUSE_SECONDS)
                await queries.postpone(db, company_id, delivery.id, pause)
        if not is_accepted:
            return


async def _post(context: AppContext, company_id: int, delivery: SubscribedDelivery) -> bool:
    headers = msgspec.json.decode(delivery.headers, type=dict[str, str])
    try:
        response = await context.client.post_guarded(delivery.url, delivery.body, headers=headers, seconds=POST_SECONDS)
    except (NotSent, Unclear) as error:
        log.warning("sandbox delivery not accepted", company_id=company_id, tries=delivery.tries, reason=str(error))
        return False
    return response.status < 300
