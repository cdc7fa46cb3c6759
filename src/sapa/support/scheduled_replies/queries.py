"""Queries for scheduled replies."""

from collections.abc import Sequence
from datetime import datetime

from sapa.db.due import WORKER, build_clock, build_due, build_in_turn_of_shards, build_next_due
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.db.wakeups import DueQueue
from sapa.support.scheduled_replies.types import ClaimedReply, DueReply, ScheduledReply

COLUMNS = ", ".join(ScheduledReply.__struct_fields__)

COUNT_OF_TICKET = sql("SELECT count(*) FROM scheduled_replies WHERE company_id = $1 AND ticket_id = $2")

LIST_OF_TICKET = sql(
    f"""
    SELECT {COLUMNS}
      FROM scheduled_replies
     WHERE company_id = $1 AND ticket_id = $2
     ORDER BY send_at, id""",
    row=ScheduledReply,
)

LIST_WAITING_TICKETS = sql(
    """
    SELECT DISTINCT ticket_id
      FROM scheduled_replies
     WHERE company_id = $1 AND ticket_id = ANY($2) AND status <> 'failed'"""
)

INSERT = sql(
    f"""
    INSERT INTO scheduled_replies (company_id, id, ticket_id, agent_id, body, send_at, due_at, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $6, $7)
    RETURNING {COLUMNS}""",
    row=ScheduledReply,
)

LOCK = sql(f"SELECT {COLUMNS} FROM scheduled_replies WHERE company_id = $1 AND id = $2 FOR UPDATE", row=ScheduledReply)

DELETE = sql("DELETE FROM scheduled_replies WHERE company_id = $1 AND id = $2")

MOVE = sql("UPDATE scheduled_replies SET ticket_id = $3 WHERE company_id = $1 AND ticket_id = $2")

LIST_DUE = sql(build_due("scheduled_replies", "id", "due_at"), row=DueReply, crosses=WORKER)

# It reads all that is due, which people have written one by one and is soon sent.
LIST_DUE_IN_TURN = sql(build_in_turn_of_shards("scheduled_replies", "id", "due_at"), row=DueReply, crosses=WORKER)

NEXT_DUE = sql(build_next_due("scheduled_replies", "due_at"), crosses=WORKER)
QUEUE = DueQueue("scheduled replies", NEXT_DUE.text)

# Due again after a while: a worker that dies leaves it to another one.
CLAIM = sql(
    f"""
    UPDATE scheduled_replies r SET status = 'sending', tries = tries + 1, due_at = clock.later
      FROM {build_clock("make_interval(secs => $3)")}
     WHERE r.company_id = $1 AND r.id = $2 AND r.due_at <= clock.now
    RETURNING r.ticket_id, r.agent_id, r.body, r.tries""",
    row=ClaimedReply,
)

SET_SCHEDULED = sql("UPDATE scheduled_replies SET status = 'scheduled' WHERE company_id = $1 AND id = $2")

SET_FAILED = sql(
    """
    UPDATE scheduled_replies SET status = 'failed', failure_reason = $3, due_at = NULL
     WHERE company_id = $1 AND id = $2"""
)


async def list_of_ticket(db: Connection, company_id: int, ticket_id: str) -> list[ScheduledReply]:
    """The next one first."""
    return await LIST_OF_TICKET.all(db, company_id, ticket_id)


async def list_waiting_tickets(db: Connection, company_id: int, ticket_ids: Sequence[str]) -> list[str]:
    return [row[0] for row in await db.fetch(LIST_WAITING_TICKETS.text, company_id, ticket_ids)]


async def count_of_ticket(tx: Tx, company_id: int, ticket_id: str) -> int:
    number: int = await COUNT_OF_TICKET.value(tx, company_id, ticket_id)
    return number


async def insert_reply(
    tx: Tx, company_id: int, id: str, ticket_id: str, agent_id: int, body: str, send_at: datetime, now: datetime
) -> ScheduledReply:
    [inserted] = await INSERT.all(tx, company_id, id, ticket_id, agent_id, body, send_at, now)
    return inserted


async def find_locked(tx: Tx, company_id: int, id: str) -> ScheduledReply | None:
    return await LOCK.find(tx, company_id, id)


async def delete_reply(tx: Tx, company_id: int, id: str) -> None:
    await DELETE.run(tx, company_id, id)


async def move(tx: Tx, company_id: int, ticket_id: str, to_ticket_id: str) -> None:
    await MOVE.run(tx, company_id, ticket_id, to_ticket_id)


async def list_due(db: Connection, most: int) -> list[DueReply]:
    found = await LIST_DUE.all(db, most)
    if len(found) < most:
        return found
    return await LIST_DUE_IN_TURN.all(db, most)


async def claim(tx: Tx, due: DueReply, seconds: float) -> ClaimedReply | None:
    """None if another worker has it, or it was deleted."""
    return await CLAIM.find(tx, due.company_id, due.id, seconds)


async def set_scheduled(tx: Tx, due: DueReply) -> None:
    await SET_SCHEDULED.run(tx, due.company_id, due.id)


async def set_failed(tx: Tx, due: DueReply, reason: str) -> None:
    await SET_FAILED.run(tx, due.company_id, due.id, reason)
