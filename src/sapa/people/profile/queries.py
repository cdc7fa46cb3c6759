"""How a user's own settings are stored. They belong to people, who are not confined to one company."""

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.people.profile.types import AwayMember, OpenSession

DIRECTORY = "the directory of people"

LIST_SESSIONS = sql(
    """
    SELECT s.hash, o.name AS organisation, s.address, s.browser, s.created_at, s.seen_at
      FROM sessions s
      JOIN organisations o ON o.id = s.organisation_id
     WHERE s.user_id = $1 AND s.expires_at > now()
     ORDER BY coalesce(s.seen_at, s.created_at) DESC
     LIMIT $2""",
    row=OpenSession,
    crosses=DIRECTORY,
)

END_SESSION = sql("DELETE FROM sessions WHERE user_id = $1 AND hash = $2", crosses=DIRECTORY)

MARK_SEEN = sql(
    """
    WITH seen AS (
        UPDATE sessions SET seen_at = now()
         WHERE hash = $1 AND (seen_at IS NULL OR seen_at < now() - make_interval(secs => $2))
        RETURNING organisation_id, user_id
    )
    UPDATE memberships m SET seen_at = now()
      FROM seen
     WHERE m.organisation_id = seen.organisation_id AND m.user_id = seen.user_id""",
    crosses=DIRECTORY,
)

CHANGE = sql("UPDATE users SET name = $2, time_zone = $3, currency = $4 WHERE id = $1", crosses=DIRECTORY)

FIND_ALERTS = sql("SELECT alerts FROM memberships WHERE organisation_id = $1 AND user_id = $2", crosses=DIRECTORY)

LOCK_ALERTS = sql(f"{FIND_ALERTS.text} FOR NO KEY UPDATE", crosses=DIRECTORY)

SAVE_ALERTS = sql(
    "UPDATE memberships SET alerts = $3::text::json WHERE organisation_id = $1 AND user_id = $2", crosses=DIRECTORY
)

# Those who have never signed in, and those who are there or were mailed a short time ago, are not away.
LIST_AWAY = sql(
    """
    SELECT u.id AS user_id, u.email, u.name, u.language, o.id AS organisation_id, o.name AS organisation, c.company_id,
           convert_to(m.alerts::text, 'UTF8') AS alerts, greatest(m.seen_at, m.alerted_at) AS since
      FROM memberships m
      JOIN users u ON u.id = m.user_id
      JOIN organisations o ON o.id = m.organisation_id
      JOIN companies c ON c.organisation_id = o.id AND c.environment = 'live'
     WHERE m.joined_at IS NOT NULL AND (m.alerts IS NULL OR m.alerts ->> 'mail' = 'true')
       AND m.seen_at < now() - make_interval(secs => $1)
       AND (m.alerted_at IS NULL OR m.alerted_at < now() - make_interval(secs => $2))
     ORDER BY m.organisation_id, m.user_id
     LIMIT $3""",
    row=AwayMember,
    crosses=DIRECTORY,
)

MARK_ALERTED = sql(
    """
    UPDATE memberships SET alerted_at = now()
     WHERE organisation_id = $1 AND user_id = $2
       AND (alerted_at IS NULL OR alerted_at < now() - make_interval(secs => $3))""",
    crosses=DIRECTORY,
)


async def list_sessions(db: Connection, user_id: int, most: int) -> list[OpenSession]:
    return await LIST_SESSIONS.all(db, user_id, most)


async def end_session(tx: Tx, user_id: int, hash: bytes) -> bool:
    return await END_SESSION.run(tx, user_id, hash) == 1


async def mark_seen(db: Connection, hash: bytes, seconds: float) -> None:
    await MARK_SEEN.run(db, hash, seconds)


async def change(tx: Tx, user_id: int, name: str, time_zone: str | None, currency: str | None) -> None:
    await CHANGE.run(tx, user_id, name, time_zone, currency)


async def find_alerts(db: Connection, organisation_id: int, user_id: int) -> str | None:
    alerts: str | None = await FIND_ALERTS.value(db, organisation_id, user_id)
    return alerts


async def find_locked_alerts(tx: Tx, organisation_id: int, user_id: int) -> str | None:
    """Nobody else changes them until the transaction ends."""
    alerts: str | None = await LOCK_ALERTS.value(tx, organisation_id, user_id)
    return alerts


async def save_alerts(tx: Tx, organisation_id: int, user_id: int, alerts: str) -> None:
    await SAVE_ALERTS.run(tx, organisation_id, user_id, alerts)


async def list_away(db: Connection, away_seconds: float, pause_seconds: float, most: int) -> list[AwayMember]:
    return await LIST_AWAY.all(db, away_seconds, pause_seconds, most)


async def mark_alerted(tx: Tx, organisation_id: int, user_id: int, pause_seconds: float) -> bool:
    """False if another worker did so before."""
    return await MARK_ALERTED.run(tx, organisation_id, user_id, pause_seconds) == 1
