"""What a WhatsApp number may still send: its throughput, the pace to one person, and the customer's reply window.

Sapa checks windows and keeps the pace itself before it calls a channel, and its test environment has no pace. So only
calls from outside are limited here.
"""

from datetime import datetime, timedelta

from sapa.context import AppContext
from sapa.db.pool import Connection
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.sending.pacing import get_rate
from sapa.sandbox.channels import queries, refusals
from sapa.sandbox.channels.accounts import SandboxAccount
from sapa.sandbox.channels.graph_errors import GraphRefusal
from sapa.sandbox.channels.number_status import get_state
from sapa.sandbox.channels.people import get_number
from sapa.sandbox.channels.scripts import MAGIC_NUMBERS

PAIR_SECONDS = 6.0
PAIR_BURST = 45
"""So many messages to one person may come at once; the pace makes up for them afterwards."""


async def count_turn(context: AppContext, account: SandboxAccount, to: str) -> GraphRefusal | None:
    """Counts a message; returns why it is refused, if the number or the pair sent too many."""
    capabilities = CHANNELS[account.source].capabilities
    number = f"{account.source}/number"
    pair = f"{account.source}/pair/{get_number(to)}"
    async with context.database.connection() as db:
        per_second = get_rate(capabilities, (await get_state(db, account)).throughput)
        if not await queries.count_turn(db, account.company_id, number, 1 / per_second, 1.0):
            return refusals.build_error(130429)
        if not await queries.count_turn(db, account.company_id, pair, PAIR_SECONDS, PAIR_SECONDS * PAIR_BURST):
            return refusals.build_error(131056)
    return None


async def is_window_open(db: Connection, account: SandboxAccount, to: str, now: datetime) -> bool:
    """People with a script always have an open window: their script decides."""
    number = get_number(to)
    if number.startswith(MAGIC_NUMBERS) or not number.isdigit():
        return True
    wrote_at = await queries.find_wrote_at(db, account.company_id, account.source, number)
    window = CHANNELS[account.source].capabilities.window or timedelta()
    return wrote_at is not None and now - wrote_at <= window
