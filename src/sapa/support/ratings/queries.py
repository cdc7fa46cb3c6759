"""Queries for ratings."""

from collections.abc import Mapping
from datetime import datetime

from sapa.db.due import WORKER, build_next_real_due
from sapa.db.listing import Listing
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.db.wakeups import DueQueue
from sapa.http.errors import NotFound
from sapa.support.ratings.types import DueRating, Rating, RatingQuestion

COLUMNS = ", ".join(Rating.__struct_fields__)

GET = sql(f"SELECT {COLUMNS} FROM ratings WHERE company_id = $1 AND id = $2", row=Rating)

LOCK = sql(f"SELECT {COLUMNS} FROM ratings WHERE company_id = $1 AND id = $2 FOR UPDATE", row=Rating)

FIND_BY_TOKEN = sql(f"SELECT {COLUMNS} FROM ratings WHERE company_id = $1 AND token = $2", row=Rating)

# A cycle is asked about once.
INSERT = sql(
    """
    WITH inserted AS (
        INSERT INTO ratings (company_id, id, ticket_id, cycle, agent_id, customer_id, source, token, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
            ON CONFLICT (company_id, ticket_id, cycle) DO NOTHING
        RETURNING company_id
    )
    INSERT INTO counter_deltas (company_id, counter, cell, delta)
    SELECT $1, 'ratings', '', 1 FROM inserted WHERE company_id = $1"""
)

SET_ANSWER = sql(
    f"""
    UPDATE ratings SET status = 'rated', score = $3, comment = $4, rated_at = $5
     WHERE company_id = $1 AND id = $2
    RETURNING {COLUMNS}""",
    row=Rating,
)

SET_TICKET = sql("UPDATE tickets SET rating = $3 WHERE company_id = $1 AND id = $2")

# Companies take turns, so that none waits for another's backlog.
LIST_DUE = sql(
    """
    SELECT company_id, id
      FROM (SELECT company_id, id, due_at, row_number() OVER (PARTITION BY company_id ORDER BY due_at) AS turn
              FROM ratings
             WHERE status = 'queued' AND due_at <= statement_timestamp()) AS due
     ORDER BY turn, due_at
     LIMIT $1""",
    row=DueRating,
    crosses="the worker looks for questions over all companies, then claims one company's",
)

NEXT_DUE = sql(build_next_real_due("ratings", "due_at", "status = 'queued'"), crosses=WORKER)
QUEUE = DueQueue("rating questions", NEXT_DUE.text)

# Asked from now on: what a dead worker was sending may have been sent, so it is not sent again.
CLAIM = sql(
    """
    UPDATE ratings r SET status = 'asked', tries = tries + 1
      FROM tickets t
     WHERE r.company_id = $1 AND r.id = $2 AND r.status = 'queued' AND t.company_id = $1 AND t.id = r.ticket_id
    RETURNING r.token, r.source, t.connection_id, t.identity, r.tries""",
    row=RatingQuestion,
)

POSTPONE = sql(
    """
    UPDATE ratings SET status = 'queued', due_at = statement_timestamp() + make_interval(secs => $3)
     WHERE company_id = $1 AND id = $2 AND status = 'asked'"""
)

MARK_FAILED = sql("UPDATE ratings SET status = 'failed' WHERE company_id = $1 AND id = $2 AND status = 'asked'")

LISTING = Listing(
    "ratings",
    row=Rating,
    counter="ratings",
    filters={
        "agent_id": "agent_id = {}",
        "ticket_id": "ticket_id = {}",
        "score": "score = {}",
        "status": "status = {}",
        "rated_from": "status = 'rated' AND rated_at >= {}",
        "rated_to": "status = 'rated' AND rated_at <= {}",
    },
    sorts={"createdAt": "created_at"},
)


async def get_rating(db: Connection, company_id: int, id: str) -> Rating:
    return _or_not_found(await GET.find(db, company_id, id))


async def lock_rating(tx: Tx, company_id: int, id: str) -> Rating:
    return _or_not_found(await LOCK.find(tx, company_id, id))


async def find_by_token(db: Connection, company_id: int, token: str) -> Rating | None:
    return await FIND_BY_TOKEN.find(db, company_id, token)


async def insert_rating(tx: Tx, company_id: int, id: str, *columns: object) -> None:
    await INSERT.run(tx, company_id, id, *columns)


async def set_answer(tx: Tx, company_id: int, rating: Rating, score: int, comment: str | None, at: datetime) -> Rating:
    await SET_TICKET.run(tx, company_id, rating.ticket_id, score)
    return _or_not_found(await SET_ANSWER.find(tx, company_id, rating.id, score, comment, at))


async def list_due(db: Connection, most: int) -> list[DueRating]:
    return await LIST_DUE.all(db, most)


async def claim(tx: Tx, due: DueRating) -> RatingQuestion | None:
    """None if another worker has it."""
    return await CLAIM.find(tx, due.company_id, due.id)


async def postpone(tx: Tx, due: DueRating, seconds: float) -> None:
    await POSTPONE.run(tx, due.company_id, due.id, seconds)


async def mark_failed(tx: Tx, due: DueRating) -> None:
    await MARK_FAILED.run(tx, due.company_id, due.id)


async def list_ratings(
    db: Connection, company_id: int, filters: Mapping[str, object], limit: int, offset: int
) -> tuple[list[Rating], int]:
    return await LISTING.page(db, company_id, filters, "createdAt:desc", limit, offset)


def _or_not_found(rating: Rating | None) -> Rating:
    if rating is None:
        raise NotFound
    return rating
