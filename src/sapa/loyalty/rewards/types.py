"""Rewards and redemptions: their structs, errors and events."""

from decimal import Decimal
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from sapa.events import Event
from sapa.http.errors import Conflict
from sapa.http.responses import Envelope, StoredJson, Timestamp
from sapa.loyalty.types import (
    MAX_POINTS,
    Count,
    HistoryPagination,
    LedgerEntry,
    LedgerKey,
    Metadata,
    Wallet,
    WalletId,
)
from sapa.values.api_base import Base
from sapa.values.enum_names import EnumName
from sapa.values.ids import CustomerId, IdKind

OPTION_ID = IdKind("rwd_")
REDEMPTION_ID = IdKind("rdm_")

RewardOptionId = Annotated[str, OPTION_ID]
RedemptionId = Annotated[str, REDEMPTION_ID]

DiscountType = Annotated[
    Literal["fixed_amount", "percentage", "free_shipping"], EnumName("DiscountType"), Meta(examples=["fixed_amount"])
]
ExpirationPreset = Annotated[
    Literal["NO_EXPIRATION", "SEVEN_DAYS", "THIRTY_DAYS", "NINETY_DAYS", "ONE_YEAR"],
    EnumName("ExpirationPreset"),
    Meta(description="How long a voucher is valid, from its commit on."),
]
RedemptionStatus = Annotated[
    Literal["reserved", "committed", "released", "expired", "failed"], EnumName("RedemptionStatus")
]

RewardName = Annotated[str, Meta(min_length=1, max_length=255, examples=["Kopi gratis"])]
Cost = (
    Annotated[int, Meta(ge=1, le=MAX_POINTS, examples=[50], description="A whole number of points.")]
    | Annotated[str, Meta(pattern="^[1-9][0-9]{0,12}$", description="The same as a decimal string, as in responses.")]
)
DiscountValue = Annotated[
    str,
    Meta(
        pattern=r"^[0-9]{1,15}(\.[0-9]{1,15})?$",
        examples=["25000"],
        description="An amount in the company's currency, or a percentage of at most 100; none for free_shipping.",
    ),
]
VoucherPrefix = Annotated[
    str,
    Meta(pattern="^[A-Za-z0-9_-]{1,20}$", examples=["KOPI-"], description="The prefix of generated voucher codes."),
]
VoucherCode = Annotated[
    str,
    Meta(
        pattern="^[!-~]{1,64}$",
        description="Your own code, without spaces; case is ignored. Generated if you leave it out.",
    ),
]
PurchaseAmount = Annotated[
    Decimal,
    Meta(
        examples=[100000],
        description="In major units of the company's currency, with at most its decimal places.",
        extra_json_schema={"minimum": 0},
    ),
]


class RewardOption(Struct, frozen=True, rename="camel"):
    """Something that customers can redeem points for."""

    id: RewardOptionId
    reward_name: Annotated[str, Meta(examples=["Kopi gratis"])]
    cost_to_redeem: Count
    discount_type: DiscountType
    discount_value: Annotated[str | None, Meta(examples=["25000"], description="Null for free_shipping.")]
    expiration_preset: ExpirationPreset
    voucher_prefix: Annotated[str | None, Meta(examples=["KOPI-"])]
    minimum_purchase_amount: Annotated[Decimal | None, Meta(examples=[100000])]
    created_at: Timestamp
    updated_at: Timestamp


class RewardOptionIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A new reward."""

    reward_name: RewardName
    cost_to_redeem: Cost
    discount_type: DiscountType
    discount_value: DiscountValue | None = None
    expiration_preset: ExpirationPreset = "NO_EXPIRATION"
    voucher_prefix: VoucherPrefix | None = None
    minimum_purchase_amount: PurchaseAmount | None = None


class RewardOptionPatch(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Changes to a reward: a field that you leave out keeps its value, null clears it."""

    reward_name: RewardName | UnsetType = UNSET
    cost_to_redeem: Cost | UnsetType = UNSET
    discount_type: DiscountType | UnsetType = UNSET
    discount_value: DiscountValue | None | UnsetType = UNSET
    expiration_preset: ExpirationPreset | UnsetType = UNSET
    voucher_prefix: VoucherPrefix | None | UnsetType = UNSET
    minimum_purchase_amount: PurchaseAmount | None | UnsetType = UNSET


class Redemption(Struct, frozen=True, rename="camel"):
    """A reward that a customer redeemed. It keeps the terms that the reward had at that time."""

    id: RedemptionId
    customer_id: CustomerId
    wallet_id: WalletId
    reward_option_id: RewardOptionId
    reward_name: Annotated[str, Meta(examples=["Kopi gratis"])]
    points_cost: Count
    status: RedemptionStatus
    voucher_code: Annotated[
        str, Meta(examples=["KOPI-7ZQ4M0XK2BH"], description="Valid once the redemption is committed.")
    ]
    discount_type: DiscountType
    discount_value: Annotated[str | None, Meta(examples=["25000"], description="Null for free_shipping.")]
    minimum_purchase_amount: Annotated[Decimal | None, Meta(examples=[100000])]
    expiration_preset: ExpirationPreset
    metadata: Annotated[Raw | None, StoredJson(dict[str, Any] | None)]
    reserved_until: Annotated[
        Timestamp,
        Meta(description="The points are returned at this instant, unless the redemption is committed before."),
    ]
    committed_at: Annotated[Timestamp | None, Meta(description="Null unless committed.")]
    expires_at: Annotated[
        Timestamp | None,
        Meta(description="Until when the voucher is valid; null before the commit, or if it never expires."),
    ]
    created_at: Annotated[Timestamp, Meta(description="Unique per customer.")]
    updated_at: Timestamp


class RedeemIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The reward to redeem, as shown to the customer."""

    reward_option_id: Annotated[
        RewardOptionId, Meta(examples=[OPTION_ID.example], extra_json_schema={"pattern": OPTION_ID.pattern})
    ]
    reward_name: RewardName
    points_cost: Cost
    voucher_code: VoucherCode | None = None
    idempotency_key: LedgerKey | None = None
    metadata: Metadata | None = None


class FailureIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Why the customer cannot have the reward."""

    reason: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=1000,
            examples=["The till does not know this voucher"],
            description="Shown as the entry's note, and on the timeline.",
        ),
    ]


class Redeemed(Struct, frozen=True):
    """The current wallet and redemption, and the ledger entry that holds the points."""

    wallet: Wallet
    redemption: Redemption
    ledger: LedgerEntry


class Redemptions(Envelope, frozen=True):
    """A part of a customer's redemptions, newest first."""

    paging = "before"
    data: list[Redemption]
    pagination: HistoryPagination


class Tally(Struct, frozen=True):
    """The number of redemptions and their total points."""

    count: Annotated[int, Meta(examples=[1])]
    points: Count


class RedemptionSummary(Struct, frozen=True):
    """A customer's redemptions by their status."""

    total: Tally
    reserved: Tally
    committed: Tally
    released: Tally
    expired: Tally
    failed: Tally


class Redeemer(Struct, frozen=True, rename="camel"):
    """A customer who redeemed a reward. Released, expired and failed redemptions do not count."""

    customer_id: CustomerId
    first_name: Annotated[str | None, Meta(examples=["Ayu"])]
    last_name: Annotated[str | None, Meta(examples=["Lestari"])]
    email: Annotated[str | None, Meta(examples=["ayu@example.com"], extra_json_schema={"format": "idn-email"})]
    phone_number: Annotated[str | None, Meta(examples=["+628123456789"])]
    redemptions: Annotated[int, Meta(examples=[2], description="How often.")]
    points: Annotated[Count, Meta(description="The total points.")]
    last_redeemed_at: Timestamp


class VoucherTaken(Conflict):
    """Another redemption has this voucherCode. Use another one."""

    code = "VOUCHER_TAKEN"
    constraint = "loyalty_redemptions_voucher_key"
    fix = "Send another `voucherCode`, or leave it out."


class RedemptionUpdated(Event):
    """A reward was redeemed, or a redemption was committed, released, expired or failed."""

    kind = "loyalty.redemption.updated"
    base = Base.CUSTOMER
    resource_type = Redemption
