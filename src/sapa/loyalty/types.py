"""Loyalty: the structs of wallets, entries and the program, their errors and events."""

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from sapa.events import Event
from sapa.http.errors import Conflict
from sapa.http.responses import Envelope, StoredJson, Timestamp
from sapa.ports import Announcement
from sapa.values.api_base import Base
from sapa.values.enum_names import EnumName
from sapa.values.ids import CustomerId, IdKind
from sapa.values.money import Amount

WALLET_ID = IdKind("wal_")
ENTRY_ID = IdKind("led_")
RESERVATION_ID = IdKind("rsv_")
LOT_ID = IdKind("lot_")

WalletId = Annotated[str, WALLET_ID]
EntryId = Annotated[str, ENTRY_ID]
ReservationId = Annotated[str, RESERVATION_ID]

MAX_POINTS = 1_000_000_000_000
LONGEST_TTL_SECONDS = 30 * 86_400

EntryType = Annotated[
    Literal[
        "earn", "bonus", "adjust_add", "adjust_deduct", "redeem_reserve", "redeem_commit", "redeem_release",
        "redeem_reversal", "earn_reversal", "expire",
    ],
    EnumName("LedgerEntryType"),
]  # fmt: skip
EarnOn = Annotated[Literal["paid", "fulfilled", "created"], EnumName("EarnOn")]
Rounding = Annotated[Literal["floor", "round", "ceil"], EnumName("Rounding")]
ReservationStatus = Annotated[Literal["reserved", "committed", "released", "expired"], EnumName("ReservationStatus")]

Count = Annotated[str, Meta(pattern="^-?[0-9]+$", examples=["150"])]
"""Points and other whole numbers of the ledger, as decimal strings."""
Points = Annotated[int, Meta(ge=1, le=MAX_POINTS, examples=[50], description="A whole number of points.")]
Reason = Annotated[str, Meta(max_length=1000, examples=["Goodwill"], description="Shown as the entry's note.")]
LedgerKey = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=255,
        description="Your own key, which never expires: the same request with the same key returns the same entry.",
    ),
]
ReferenceType = Annotated[str, Meta(min_length=1, max_length=100, description="What the points are for.")]
ReferenceId = Annotated[str, Meta(min_length=1, max_length=255, description="Your id of what the points are for.")]
Ttl = Annotated[int, Meta(ge=1, le=LONGEST_TTL_SECONDS, examples=[900])]
Metadata = Annotated[
    dict[str, Any],
    Meta(max_length=100, description="Your own data. Numbers beyond 9007199254740991 become strings of their digits."),
]


class Wallet(Struct, frozen=True, rename="camel"):
    """A customer's points.

    Points earned minus points burned equal points available plus points reserved. The reversal of an order lowers the
    points earned; the reversal of a redemption lowers the points burned.
    """

    id: WalletId
    company_id: Annotated[int, Meta(examples=[1])]
    customer_id: CustomerId
    available_points: Annotated[Count, Meta(description="Can be spent now. Expired points are not counted.")]
    reserved_points: Annotated[Count, Meta(description="Held by reservations.")]
    lifetime_earned_points: Count
    lifetime_burned_points: Annotated[Count, Meta(description="Redeemed, deducted and expired.")]
    version: Annotated[Count, Meta(description="Grows by one with each ledger entry.")]
    last_ledger_at: Timestamp | None
    created_at: Timestamp
    updated_at: Timestamp


class LedgerEntry(Struct, frozen=True, rename="camel"):
    """One change of a wallet. An entry is never changed and never deleted."""

    id: EntryId
    customer_id: CustomerId
    wallet_id: WalletId
    company_id: Annotated[int, Meta(examples=[1])]
    created_by_id: Annotated[
        int | None, Meta(description="A user of the console; null for the API and for automatic entries.")
    ]
    entry_type: EntryType
    points_delta: Annotated[Count, Meta(description="The change of available and reserved together; 0 for a hold.")]
    available_after: Count
    reserved_after: Count
    reference_type: Annotated[str | None, Meta(examples=["order"])]
    reference_id: Annotated[str | None, Meta(examples=["order_01jc9y3q5me8w92v7x4t6r0n1k"])]
    idempotency_key: str | None
    note: Annotated[str | None, Meta(examples=["Goodwill"])]
    metadata: Annotated[Raw, StoredJson(dict[str, Any])]
    occurred_at: Annotated[Timestamp, Meta(description="Unique per customer; later entries have later instants.")]
    created_at: Timestamp


class HistoryPagination(Struct, frozen=True, rename="camel"):
    """The position of a page in the history."""

    limit: Annotated[int, Meta(examples=[20])]
    has_more: bool
    next_before: Annotated[Timestamp | None, Meta(description="Send it as `before` to read older entries.")]


class History(Envelope, frozen=True):
    """A part of a customer's ledger, newest first."""

    paging = "before"
    data: list[LedgerEntry]
    pagination: HistoryPagination


class AdjustmentIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Points to add or deduct manually."""

    direction: Annotated[Literal["add", "deduct"], EnumName("AdjustmentDirection")]
    points: Points
    reason: Reason | None = None
    idempotency_key: LedgerKey | None = None
    metadata: Metadata | None = None


class Adjusted(Struct, frozen=True):
    """The wallet as it is now, and the entry of the adjustment."""

    wallet: Wallet
    ledger: LedgerEntry


class ReservationIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Points to hold until they are committed or released, or the reservation expires."""

    points: Points
    ttl_seconds: (
        Annotated[
            Ttl, Meta(description="How long to hold the points. Defaults to the program's reservationTtlSeconds.")
        ]
        | None
    ) = None
    reference_type: ReferenceType | None = None
    reference_id: ReferenceId | None = None


class Reservation(Struct, frozen=True, rename="camel"):
    """Points that are held."""

    id: ReservationId
    customer_id: CustomerId
    wallet_id: WalletId
    points: Count
    status: ReservationStatus
    reference_type: Annotated[str | None, Meta(examples=["cart"])]
    reference_id: Annotated[str | None, Meta(examples=["cart-77"])]
    redemption_id: str | None
    expires_at: Timestamp
    created_at: Timestamp
    updated_at: Timestamp


class LoyaltySettings(Struct, frozen=True, rename="camel"):
    """How the company's loyalty program works."""

    enabled: bool
    earn_on: Annotated[EarnOn, Meta(description="What makes an order earn its points.")]
    rounding: Annotated[
        Rounding,
        Meta(description="How to round the number of times that the tier's amount fits into what counts of the order."),
    ]
    expiry_months: Annotated[int | None, Meta(description="Months after which earned points expire; null for never.")]
    reservation_ttl_seconds: Annotated[int, Meta(examples=[900])]


class LoyaltySettingsPatch(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Changes to the program: a field that you leave out keeps its value."""

    enabled: bool | UnsetType = UNSET
    earn_on: EarnOn | UnsetType = UNSET
    rounding: Rounding | UnsetType = UNSET
    expiry_months: Annotated[int, Meta(ge=1, le=1200)] | None | UnsetType = UNSET
    reservation_ttl_seconds: Ttl | UnsetType = UNSET


class Tier(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """For orders of at least this amount: the points for each time that the amount fits into what counts."""

    currency_amount: Amount
    points: Points


class PointConversion(Struct, frozen=True):
    """What orders earn: the highest tier whose amount does not exceed what counts of the order applies. Without tiers,
    orders earn nothing.

    With earnOn paid, what was paid and not refunded counts; otherwise the total, less what was refunded."""

    tiers: list[Tier]


class PointConversionIn(Struct, frozen=True, forbid_unknown_fields=True):
    """The new tiers. They replace all existing ones."""

    tiers: Annotated[list[Tier], Meta(max_length=100)]


class Drift(Struct, frozen=True, rename="camel"):
    """A wallet that does not match its entries, lots or reservations."""

    wallet_id: WalletId
    customer_id: CustomerId
    rule: Annotated[str, Meta(examples=["available is the sum of the lots' remaining points"])]
    expected: Annotated[str, Meta(examples=["150"])]
    found: Annotated[str, Meta(examples=["140"])]


class Reconciliation(Struct, frozen=True, rename="camel"):
    """The result of checking every rule of the ledger against its rows."""

    wallets: Annotated[int, Meta(description="How many wallets were checked.")]
    available_points: Count
    reserved_points: Count
    drifting_wallets: Annotated[int, Meta(examples=[0])]
    drift: Annotated[list[Drift], Meta(description="The first 100 mismatches.")]


class Memo(Struct, frozen=True, kw_only=True):
    """The columns of an entry besides its numbers."""

    reference_type: str | None = None
    reference_id: str | None = None
    note: str | None = None
    metadata: bytes | None = None
    idempotency_key: str | None = None
    fingerprint: bytes | None = None
    created_by_id: int | None = None


class Portion(Struct, frozen=True):
    """Points of one lot, taken, held or returned."""

    lot_id: str
    points: int
    is_dead: bool = False
    """The lot has expired: points that return to it expire at once."""


class Position(Struct, frozen=True):
    """What an order has earned so far."""

    earn_on: EarnOn
    worth: int
    target: int
    posted: int
    shortfall: int
    postings: int
    tiers_version: int | None
    """The tiers and the rounding under which it first earned. None for an order that earned before they were kept."""
    rounding: Rounding | None


class ProgramState(Struct, frozen=True):
    """The program's settings and the company's time, read under the wallet's lock."""

    now: datetime
    enabled: bool
    new_lots_expire_at: datetime | None
    """When points that are granted now expire; None for never."""
    reservation_ttl_seconds: int
    has_customer: bool
    """False once the customer is deleted; the wallet stays."""
    has_due: bool


class LoyaltyDisabled(Conflict):
    """The loyalty program is disabled. To enable it, send PUT /loyalty/settings with enabled true."""

    code = "LOYALTY_DISABLED"
    fix = "Enable the program, or leave the call out while it is disabled."


class InsufficientPoints(Conflict):
    """The customer does not have enough points available."""

    code = "INSUFFICIENT_POINTS"
    fix = "Get the wallet, and use at most `availablePoints`."


class ReservationClosed(Conflict):
    """The reservation or redemption is already committed, released, expired or failed."""

    code = "RESERVATION_CLOSED"
    fix = "Get the customer's redemptions to see how it ended. Make a new reservation if points are still to be used."


class LedgerKeyReused(Conflict):
    """This idempotencyKey was used for a different request; use a new key for each new request."""

    code = "IDEMPOTENCY_KEY_REUSED"
    constraint = "loyalty_entries_idempotency_key"
    fix = "Use one `idempotencyKey` for one change of points."


MAX_EARNED = 10**18
"""Points that one wallet can earn, as its constraint says."""


class WalletFull(Conflict):
    """The wallet is full. Award fewer points."""

    code = "WALLET_FULL"
    constraint = "loyalty_wallets_size_check"
    fix = "Award fewer points, or redeem some first."


class PointsUpdated(Event):
    """A customer's points changed; the body is the current wallet. Each change sends one event, even if it has several
    ledger entries."""

    kind = "loyalty.points.updated"
    base = Base.CUSTOMER
    resource_type = Wallet


class ReservationsClosed(Announcement, frozen=True):
    """Reservations ended under their wallet's lock. For a failed redemption, `was` and `reason` are set."""

    reservations: list[Reservation]
    status: ReservationStatus | Literal["failed"]
    now: datetime
    was: ReservationStatus = "reserved"
    reason: str | None = None
