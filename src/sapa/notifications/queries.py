"""SQL of notifications."""

from datetime import datetime

from sapa.db.due import WORKER, build_next_real_due
from sapa.db.pool import Connection, Tx, announce_due
from sapa.db.sql import sql
from sapa.db.wakeups import DueQueue
from sapa.notifications.types import DueNotification, NotificationSettings, ShipmentNotification

GET_SETTINGS = sql(
    "SELECT enabled, rules, updated_at FROM notification_settings WHERE company_id = $1", row=NotificationSettings
)

SAVE_SETTINGS = sql(
    """
    INSERT INTO notification_settings (company_id, enabled, rules)
    VALUES ($1, $2, $3)
        ON CONFLICT (company_id) DO UPDATE SET enabled = excluded.enabled, rules = excluded.rules, updated_at = $4
    RETURNING enabled, rules, updated_at""",
    row=NotificationSettings,
)

# Each step of a shipment once, also when the parcel takes it again.
INSERT = sql(
    """
    INSERT INTO shipment_notifications (company_id, shipment_id, step, occurred_at)
    VALUES ($1, $2, $3, $4)
        ON CONFLICT (company_id, shipment_id, step) DO NOTHING"""
)

LIST = sql(
    """
    SELECT step, status, reason, code, message_id AS message_id2, occurred_at, updated_at
      FROM shipment_notifications
     WHERE company_id = $1 AND shipment_id = $2
     ORDER BY occurred_at, step""",
    row=ShipmentNotification,
)

# Companies take turns, so that none waits for another's backlog.
LIST_DUE = sql(
    """
    SELECT company_id, shipment_id, step, is_abandoned
      FROM (SELECT company_id, shipment_id, step, due_at, status = 'sending' AS is_abandoned,
                   row_number() OVER (PARTITION BY company_id ORDER BY due_at) AS turn
              FROM shipment_notifications
             WHERE due_at <= statement_timestamp()) AS due
     ORDER BY turn, due_at
     LIMIT $1""",
    row=DueNotification,
    crosses="the worker looks for notifications over all companies, then claims one company's",
)

NEXT_NOTIFICATIONS = sql(build_next_real_due("shipment_notifications", "due_at"), crosses=WORKER)
NOTIFICATIONS = DueQueue("notifications", NEXT_NOTIFICATIONS.text)

CLAIM = sql(
    """
    UPDATE shipment_notifications
       SET status = 'sending', due_at = statement_timestamp() + make_interval(secs => $4), tries = tries + 1,
           updated_at = statement_timestamp()
     WHERE company_id = $1 AND shipment_id = $2 AND step = $3 AND status = 'queued'
    RETURNING occurred_at""",
    row=datetime,
)

SETTLE = sql(
    """
    UPDATE shipment_notifications
       SET status = $4, reason = $5, code = $6, message_id = $7, due_at = NULL, updated_at = statement_timestamp()
     WHERE company_id = $1 AND shipment_id = $2 AND step = $3 AND status = 'sending'"""
)

POSTPONE = sql(
    """
    UPDATE shipment_notifications
       SET status = 'queued', due_at = statement_timestamp() + make_interval(secs => $4), reason = $5, code = $6,
           updated_at = statement_timestamp()
     WHERE company_id = $1 AND shipment_id = $2 AND step = $3 AND status = 'sending' AND tries < $7"""
)


async def find_settings(db: Connection, company_id: int) -> NotificationSettings | None:
    return await GET_SETTINGS.find(db, company_id)


async def save_settings(tx: Tx, company_id: int, enabled: bool, rules: bytes, now: datetime) -> NotificationSettings:
    (saved,) = await SAVE_SETTINGS.all(tx, company_id, enabled, rules, now)
    return saved


async def insert(tx: Tx, company_id: int, shipment_id: str, step: str, occurred_at: datetime) -> None:
    await INSERT.run(tx, company_id, shipment_id, step, occurred_at)
    announce_due(tx, NOTIFICATIONS)


async def list_notifications(db: Connection, company_id: int, shipment_id: str) -> list[ShipmentNotification]:
    return await LIST.all(db, company_id, shipment_id)


async def list_due(db: Connection, most: int) -> list[DueNotification]:
    return await LIST_DUE.all(db, most)


async def claim(tx: Tx, due: DueNotification, seconds: float) -> datetime | None:
    """When the step was taken; None if another worker has it."""
    return await CLAIM.find(tx, due.company_id, due.shipment_id, due.step, seconds)


async def settle(
    tx: Tx, due: DueNotification, status: str, reason: str | None, code: str | None, message_id: str | None
) -> None:
    await SETTLE.run(tx, due.company_id, due.shipment_id, due.step, status, reason, code, message_id)


async def postpone(tx: Tx, due: DueNotification, seconds: float, reason: str, code: str, max_tries: int) -> bool:
    """False after the last try."""
    key = (due.company_id, due.shipment_id, due.step)
    return bool(await POSTPONE.run(tx, *key, seconds, reason, code, max_tries))
