"""How users change what is theirs: name, time zone, currency, sessions and alerts."""

from hashlib import sha256

import msgspec

from sapa.access import actions as access
from sapa.db.pool import Connection, Tx
from sapa.http.errors import Invalid, NotFound
from sapa.people.profile import queries
from sapa.people.profile.types import KINDS, AlertSettings, AwayMember, OpenSession
from sapa.values.money import BadMoney, parse_currency

SEEN_SECONDS = 60.0
"""How exactly it is known when somebody was last there."""
MAX_SESSIONS = 50
LONGEST_NAME = 100
DEFAULTS = AlertSettings()


async def list_sessions(db: Connection, user_id: int) -> list[OpenSession]:
    """The one that was used last first."""
    return await queries.list_sessions(db, user_id, MAX_SESSIONS)


async def end_session(tx: Tx, user_id: int, id: str) -> None:
    """Signs one browser out. Raises NotFound."""
    try:
        hash = bytes.fromhex(id)
    except ValueError:
        raise NotFound from None
    if not await queries.end_session(tx, user_id, hash):
        raise NotFound


async def mark_seen(db: Connection, secret: str) -> None:
    """Somebody does something in the browser that has this secret."""
    await queries.mark_seen(db, hash_secret(secret), SEEN_SECONDS)


def hash_secret(secret: str) -> bytes:
    return sha256(secret.encode()).digest()


async def change(tx: Tx, user_id: int, name: str, time_zone: str, currency: str) -> None:
    """Without a time zone or currency of their own they have that of each company."""
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise Invalid.field("name", f"must have 1 to {LONGEST_NAME} printable characters")
    zone = await access.get_time_zone(tx, time_zone) if time_zone else None
    try:
        await queries.change(tx, user_id, name, zone, parse_currency(currency) if currency else None)
    except BadMoney as error:
        raise Invalid.field("currency", str(error)) from None


async def get_alerts(db: Connection, organisation_id: int, user_id: int) -> AlertSettings:
    stored = await queries.find_alerts(db, organisation_id, user_id)
    return DEFAULTS if stored is None else read_alerts(stored)


async def lock_alerts(tx: Tx, organisation_id: int, user_id: int) -> AlertSettings:
    """Like `get_alerts`, to change some of them: nobody else changes them until the transaction ends."""
    stored = await queries.find_locked_alerts(tx, organisation_id, user_id)
    return DEFAULTS if stored is None else read_alerts(stored)


async def save_alerts(tx: Tx, organisation_id: int, user_id: int, alerts: AlertSettings) -> None:
    if unknown := [kind for kind in alerts.kinds if kind not in KINDS]:
        raise Invalid.field("kinds", f"must be among {', '.join(KINDS)}; {unknown[0]} is not")
    await queries.save_alerts(tx, organisation_id, user_id, msgspec.json.encode(alerts).decode())


def read_alerts(stored: str | bytes) -> AlertSettings:
    return msgspec.json.decode(stored, type=AlertSettings)


async def list_away(db: Connection, away_seconds: float, pause_seconds: float, most: int) -> list[AwayMember]:
    """Members who want mail when they are away, and are."""
    return await queries.list_away(db, away_seconds, pause_seconds, most)


async def mark_alerted(tx: Tx, member: AwayMember, pause_seconds: float) -> bool:
    """False if another worker has mailed them."""
    return await queries.mark_alerted(tx, member.organisation_id, member.user_id, pause_seconds)
