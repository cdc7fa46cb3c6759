"""How deliveries are read: those still in the queue, and the last attempt of those that are settled."""

from msgspec import Struct

from sapa.db.pool import Connection, Tx
from sapa.db.sql import Statement, sql
from sapa.webhooks.types import DeliveryFilter, DeliveryNotFound, WebhookDelivery

_AFTER_ALL_IDS = "~"
COLUMNS = ", ".join(WebhookDelivery.__struct_fields__)

_WAITING = """
    SELECT q.id, q.endpoint_id, q.event_id, v.kind AS event, q.event_at,
           CASE WHEN e.status <> 'active' OR e.catch_up IS NOT NULL THEN 'held'
                WHEN q.attempt > 1 THEN 'retrying'
                ELSE 'pending' END AS status,
           q.attempt - 1 AS attempts, q.due_at AS next_attempt_at, last.status AS response_status, last.error,
           last.message
      FROM webhook_queue q
      JOIN webhook_endpoints e ON e.company_id = $1 AND e.id = q.endpoint_id
      LEFT JOIN events v ON v.company_id = $1 AND v.created_at = q.event_at AND v.id = q.event_id
      LEFT JOIN LATERAL (
           SELECT a.status, a.error, a.message
             FROM webhook_attempts a
            WHERE a.company_id = $1 AND a.delivery_id = q.id AND q.attempt > 1
            ORDER BY a.started_at DESC
            LIMIT 1) AS last ON true
     WHERE q.company_id = $1"""

# A delivery that two workers settled after a crash has two last attempts, but is listed once.
_SETTLED = """
    SELECT DISTINCT ON (a.delivery_id)
           a.delivery_id AS id, a.endpoint_id, a.event_id, a.kind AS event, a.event_at, a.outcome AS status,
           CASE WHEN a.outcome = 'skipped' OR a.is_probe THEN a.number - 1 ELSE a.number END AS attempts,
           NULL::timestamptz AS next_attempt_at, a.status AS response_status, a.error, a.message
      FROM webhook_attempts a
     WHERE a.company_id = $1 AND a.outcome <> 'retrying'"""

GET_DELIVERY = sql(
    f"""
    SELECT {COLUMNS}
      FROM (({_WAITING} AND q.id = $2)
            UNION ALL
            ({_SETTLED} AND a.delivery_id = $2
              ORDER BY a.delivery_id, a.started_at DESC)) AS found
     LIMIT 1""",
    row=WebhookDelivery,
)


def _list(waiting: str, settled: str) -> Statement[WebhookDelivery]:
    """Newest first; the conditions decide which indexes find them. A status tells whether a delivery waits or is
    settled: what cannot have it is not read."""
    return sql(
        f"""
    SELECT {COLUMNS}
      FROM ((SELECT {COLUMNS} FROM ({_WAITING}
                AND q.id < $2 AND q.id >= $3 AND {waiting} AND ($6::text IS NULL OR q.event_id = $6)
                AND ($7::text IS NULL OR $7 IN ('pending', 'retrying', 'held'))) AS waiting
              WHERE ($5::text IS NULL OR event = $5) AND ($7::text IS NULL OR status = $7)
              ORDER BY id DESC
              LIMIT $8)
            UNION ALL
            ({_SETTLED}
                AND a.delivery_id < $2 AND a.delivery_id >= $3 AND a.started_at >= $9::text::timestamptz
                AND ($6::text IS NULL OR a.event_id = $6)
                AND ($5::text IS NULL OR a.kind = $5) AND ($7::text IS NULL OR a.outcome = $7)
                AND {settled} AND ($7::text IS NULL OR $7 IN ('delivered', 'failed', 'skipped'))
              ORDER BY a.delivery_id DESC, a.started_at DESC
              LIMIT $8)) AS found
     ORDER BY id DESC
     LIMIT $8""",
        row=WebhookDelivery,
    )


LIST_OF_COMPANY = _list("$4::text IS NULL", "$4::text IS NULL")

LIST_OF_ENDPOINT = _list("q.endpoint_id = $4", "a.endpoint_id = $4")

LIST_UNDELIVERED = _list(
    "q.endpoint_id = $4", "a.outcome IN ('failed', 'skipped') AND ($4::text IS NULL OR a.endpoint_id = $4)"
)

FIND_COMPANY_OF_DELIVERY = sql(
    """
    (SELECT c.company_id FROM companies c JOIN webhook_queue q ON q.company_id = c.company_id AND q.id = $1 LIMIT 1)
     UNION ALL
    (SELECT c.company_id FROM companies c
       JOIN webhook_attempts a ON a.company_id = c.company_id AND a.delivery_id = $1 LIMIT 1)
     LIMIT 1""",
    crosses="a command has only a delivery's id, which determines the company",
)


class StoredAttempt(Struct, frozen=True):
    number: int
    is_probe: bool
    started_at: str
    milliseconds: int
    outcome: str
    response_status: int | None
    error: str | None
    message: str | None
    address: str | None
    response: bytes | None


LIST_ATTEMPTS = sql(
    """
    SELECT number, is_probe, started_at, milliseconds, outcome, status AS response_status, error, message, address,
           response
      FROM webhook_attempts
     WHERE company_id = $1 AND delivery_id = $2
     ORDER BY started_at, number""",
    row=StoredAttempt,
)


class SentEvent(Struct, frozen=True):
    kind: str
    resource_id: str
    body: bytes


GET_EVENT = sql(
    """
    SELECT kind, resource_id, body
      FROM events
     WHERE company_id = $1 AND created_at = $2::text::timestamptz AND id = $3""",
    row=SentEvent,
)


class StoredEvent(Struct, frozen=True):
    """An event to send again; its number orders the events of one millisecond."""

    id: str
    created_at: str
    number: int


# An endpoint is not told of its own suspension.
LIST_EVENTS = sql(
    """
    SELECT id, created_at, number
      FROM events
     WHERE company_id = $1 AND created_at >= $2::text::timestamptz AND created_at < $3
       AND (created_at, number) > ($2::text::timestamptz, $4)
       AND (kind = ANY($5) OR $5 = '{}') AND resource_id <> $7
     ORDER BY created_at, number
     LIMIT $6""",
    row=StoredEvent,
)

# After what is queued already. Microseconds keep the events of one millisecond in their order.
QUEUE_AGAIN = sql(
    """
    WITH counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        VALUES ($1, 'webhook_queue', '', cardinality($3::text[]))
    )
    INSERT INTO webhook_queue (company_id, id, endpoint_id, due_at, event_id, event_at)
    SELECT $1, w.id, $2, now() + w.place * interval '1 microsecond', w.event_id, w.event_at
      FROM unnest($3::text[], $4::text[], $5::text[]::timestamptz[]) WITH ORDINALITY
           AS w (id, event_id, event_at, place)"""
)


async def get_delivery(db: Connection, company_id: int, id: str) -> WebhookDelivery:
    delivery = await GET_DELIVERY.find(db, company_id, id)
    if delivery is None:
        raise DeliveryNotFound
    return delivery


async def list_deliveries(
    db: Connection, company_id: int, filter: DeliveryFilter, oldest: str, since: str
) -> list[WebhookDelivery]:
    """Newest first, none older than the id `oldest`; settled ones since the time `since`."""
    statement = LIST_OF_ENDPOINT if filter.endpoint_id else LIST_OF_COMPANY
    if filter.status in {"failed", "skipped"}:
        statement = LIST_UNDELIVERED
    return await statement.all(
        db, company_id, filter.before or _AFTER_ALL_IDS, oldest, filter.endpoint_id, filter.event, filter.event_id,
        filter.status, filter.limit, since,
    )  # fmt: skip


async def find_company_of_delivery(db: Connection, id: str) -> int | None:
    company_id: int | None = await FIND_COMPANY_OF_DELIVERY.value(db, id)
    return company_id


async def list_attempts(db: Connection, company_id: int, id: str) -> list[StoredAttempt]:
    return await LIST_ATTEMPTS.all(db, company_id, id)


async def find_event(db: Connection, company_id: int, event_at: str, event_id: str) -> SentEvent | None:
    """None once the event is past its retention."""
    return await GET_EVENT.find(db, company_id, event_at, event_id)


async def list_events(
    db: Connection, company_id: int, endpoint_id: str, after: StoredEvent, until: object, kinds: list[str], limit: int
) -> list[StoredEvent]:
    """Events for the endpoint after the given one, in their order."""
    return await LIST_EVENTS.all(db, company_id, after.created_at, until, after.number, kinds, limit, endpoint_id)


async def queue_again(tx: Tx, company_id: int, endpoint_id: str, ids: list[str], events: list[StoredEvent]) -> None:
    await QUEUE_AGAIN.run(
        tx, company_id, endpoint_id, ids, [event.id for event in events], [event.created_at for event in events]
    )
