"""The timeline entries of a wallet's ledger entries. Pure: no database."""

from sapa.loyalty.ledger import WalletLedger
from sapa.loyalty.types import EntryType
from sapa.timeline.actions import NewTimelineEntry
from sapa.timeline.types import Source

TYPES: dict[EntryType, str] = {
    "earn": "points_earned",
    "bonus": "points_earned",
    "adjust_add": "points_adjusted",
    "adjust_deduct": "points_adjusted",
    "redeem_reserve": "points_reserved",
    "redeem_commit": "points_redeemed",
    "redeem_release": "points_released",
    "redeem_reversal": "points_reversed",
    "earn_reversal": "points_reversed",
    "expire": "points_expired",
}
"""The timeline's entry type of each ledger entry."""


def build_entries(ledger: WalletLedger, source: Source) -> list[NewTimelineEntry]:
    """One for each ledger entry; the source of settlement entries is the system."""
    before = {"available": str(ledger.opening_balance.available), "reserved": str(ledger.opening_balance.reserved)}
    entries = []
    for index, entry in enumerate(ledger.entries):
        after = {"available": entry.available_after, "reserved": entry.reserved_after}
        changes = "; ".join(f"{name}: {before[name]} → {after[name]}" for name in after if before[name] != after[name])
        # The note of a reservation is the reward's name, not a note that a person wrote.
        is_named = entry.entry_type == "redeem_reserve" and entry.note is not None
        log, notes = (f"{entry.note}: {changes}", None) if is_named else (changes, entry.note)
        entry_source: Source = "system" if index < ledger.settlement_entries else source
        entries.append(NewTimelineEntry(entry.customer_id, TYPES[entry.entry_type], entry_source, log, notes))
        before = after
    return entries
