"""SQL of confirmations."""

from sapa.db.due import WORKER, build_next_real_due
from sapa.db.pool import Connection, Tx, announce_due
from sapa.db.sql import sql
from sapa.db.wakeups import DueQueue
from sapa.messaging.confirmations.types import ClaimedConfirmation, DueConfirmation

INSERT = sql(
    """
    INSERT INTO consent_confirmations (company_id, message_id, connection_id, source, identity, status)
    VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (company_id, message_id) DO NOTHING"""
)

# Companies take turns, so that none waits for another's backlog. A person gets the replies to several words in their
# order: the ids of messages sort by time.
LIST_DUE = sql(
    """
    SELECT company_id, message_id, is_abandoned
      FROM (SELECT company_id, message_id, due_at, state = 'sending' AS is_abandoned,
                   row_number() OVER (PARTITION BY company_id ORDER BY due_at) AS turn
              FROM consent_confirmations c
             WHERE due_at <= statement_timestamp()
               AND NOT EXISTS (SELECT FROM consent_confirmations earlier
                                WHERE earlier.company_id = c.company_id AND earlier.source = c.source
                                  AND earlier.identity = c.identity AND earlier.message_id < c.message_id)) AS due
     ORDER BY turn, due_at
     LIMIT $1""",
    row=DueConfirmation,
    crosses="the worker looks for confirmations over all companies, then claims one company's",
)

NEXT_CONFIRMATIONS = sql(build_next_real_due("consent_confirmations", "due_at"), crosses=WORKER)
CONFIRMATIONS = DueQueue("confirmations", NEXT_CONFIRMATIONS.text)

CLAIM = sql(
    """
    UPDATE consent_confirmations
       SET state = 'sending', due_at = statement_timestamp() + make_interval(secs => $3), tries = tries + 1
     WHERE company_id = $1 AND message_id = $2 AND state = 'queued'
    RETURNING connection_id, source, identity, status""",
    row=ClaimedConfirmation,
)

DELETE = sql("DELETE FROM consent_confirmations WHERE company_id = $1 AND message_id = $2 AND state = 'sending'")

POSTPONE = sql(
    """
    UPDATE consent_confirmations
       SET state = 'queued', due_at = statement_timestamp() + make_interval(secs => $3)
     WHERE company_id = $1 AND message_id = $2 AND state = 'sending' AND tries < $4"""
)


async def insert(
    tx: Tx, company_id: int, message_id: str, connection_id: str, source: str, identity: str, status: str
) -> None:
    await INSERT.run(tx, company_id, message_id, connection_id, source, identity, status)
    announce_due(tx, CONFIRMATIONS)


async def list_due(db: Connection, most: int) -> list[DueConfirmation]:
    return await LIST_DUE.all(db, most)


async def claim(tx: Tx, due: DueConfirmation, seconds: float) -> ClaimedConfirmation | None:
    """None if another worker has it."""
    return await CLAIM.find(tx, due.company_id, due.message_id, seconds)


async def delete(tx: Tx, due: DueConfirmation) -> None:
    await DELETE.run(tx, due.company_id, due.message_id)


async def postpone(tx: Tx, due: DueConfirmation, seconds: float, max_tries: int) -> bool:
    """False after the last try."""
    return bool(await POSTPONE.run(tx, due.company_id, due.message_id, seconds, max_tries))
