"""What a wallet's entries tell on its customer's timeline. Pure: no database."""

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
"""What each entry is called there."""


def build_entries(book: WalletLedger, source: Source) -> list[NewTimelineEntry]:
    """One for each entry; what the settlement made was nobody's wish but ours."""
    before = {"available": str(book.opened.available), "reserved": str(book.opened.reserved)}
    told = []
    for place, entry in enumerate(book.written):
        after = {"available": entry.available_after, "reserved": entry.reserved_after}
        changes = "; ".join(f"{name}: {before[name]} → {after[name]}" for name in after if before[name] != after[name])
        # What points are put aside for is the reward's name, and nobody's own words.
        is_named = entry.entry_type == "redeem_reserve" and entry.note is not None
        log, notes = (f"{entry.note}: {changes}", None) if is_named else (changes, entry.note)
        whose: Source = "system" if place < book.settled else source
        told.append(NewTimelineEntry(entry.customer_id, TYPES[entry.entry_type], whose, log, notes))
        before = after
    return told
