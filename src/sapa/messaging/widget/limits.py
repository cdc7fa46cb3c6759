"""Rate limits for visitors and addresses, per minute. Counted in PostgreSQL, so they hold for all processes."""

from ipaddress import IPv6Address, ip_network
from typing import Literal

from sapa.db.pool import Database
from sapa.http.allow_list import parse_address
from sapa.messaging.channels.widget.types import TooFast
from sapa.messaging.widget import queries as widget

LimitedAction = Literal["session", "message", "ack", "stream", "read", "typing", "statement"]

MAX_PER_VISITOR: dict[LimitedAction, int] = {
    "session": 30,
    "message": 30,
    "ack": 240,
    "stream": 60,
    "read": 120,
    "typing": 30,
    "statement": 30,
}
MAX_PER_ADDRESS: dict[LimitedAction, int] = {"session": 120, "message": 600}
"""Higher than for a visitor: many people may share an address."""

RETRY_SECONDS = 60
_NETWORK_BITS = 64


async def check_visitor(database: Database, company_id: int, visitor_id: str, action: LimitedAction) -> None:
    await _check(database, company_id, f"{action}/visitor/{visitor_id}", MAX_PER_VISITOR[action])


async def check_address(database: Database, company_id: int, address: str, action: LimitedAction) -> None:
    await _check(database, company_id, f"{action}/address/{build_network(address)}", MAX_PER_ADDRESS[action])


async def _check(database: Database, company_id: int, subject: str, limit: int) -> None:
    async with database.connection() as db:
        used = await widget.count(db, company_id, subject)
    if used > limit:
        raise TooFast(headers={"retry-after": str(RETRY_SECONDS)})


def build_network(address: str) -> str:
    """The /64 network of an IPv6 address, which one subscriber gets; an IPv4 address unchanged."""
    parsed = parse_address(address)
    if isinstance(parsed, IPv6Address):
        return str(ip_network((parsed, _NETWORK_BITS), strict=False))
    return address
