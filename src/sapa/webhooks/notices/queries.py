"""How notices wait for their mail."""

from sapa.db.due import WORKER, build_next_real_due
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.db.wakeups import DueQueue
from sapa.webhooks.notices.types import DueNotice, OwnerNotice

LIST_DUE = sql(
    """
    SELECT company_id, id
      FROM notices
     WHERE mail_due_at IS NOT NULL AND mail_due_at <= now()
     ORDER BY mail_due_at
     LIMIT $1""",
    row=DueNotice,
    crosses="the worker looks for notices to mail over all companies, then mails one by one",
)

NEXT_MAILS = sql(build_next_real_due("notices", "mail_due_at"), crosses=WORKER)
MAILS = DueQueue("mail to owners", NEXT_MAILS.text)

# Counted before it is sent, and no more after the last try.
CLAIM = sql(
    """
    WITH claimed AS (
        UPDATE notices
           SET mail_tries = mail_tries + 1,
               mail_due_at = CASE WHEN mail_tries + 1 < $3 THEN clock.later END
          FROM (SELECT now() AS now, now() + make_interval(secs => $4) AS later) AS clock
         WHERE company_id = $1 AND id = $2 AND mail_due_at <= clock.now
        RETURNING resource_id, message
    )
    SELECT c.environment, n.resource_id AS endpoint_id, n.message, e.url, e.auto_resume
      FROM claimed n
      JOIN companies c ON c.company_id = $1
      LEFT JOIN webhook_endpoints e ON e.company_id = $1 AND e.id = n.resource_id""",
    row=OwnerNotice,
)

SETTLE = sql("UPDATE notices SET mail_due_at = NULL WHERE company_id = $1 AND id = $2")


async def list_due(db: Connection, limit: int) -> list[DueNotice]:
    return await LIST_DUE.all(db, limit)


async def claim(tx: Tx, due: DueNotice, max_tries: int, retry_seconds: int) -> OwnerNotice | None:
    """None when another worker has claimed it."""
    return await CLAIM.find(tx, due.company_id, due.id, max_tries, retry_seconds)


async def settle(tx: Tx, due: DueNotice) -> None:
    await SETTLE.run(tx, due.company_id, due.id)
