"""Settlements: what carriers state about the cash that they collected, and where it is not as expected."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal

from msgspec import Meta, Struct

from sapa.http.errors import Conflict
from sapa.http.responses import Timestamp
from sapa.shipping.providers import Provider
from sapa.values.enum_names import EnumName
from sapa.values.ids import IdKind
from sapa.values.money import Currency

SETTLEMENT_ID = IdKind("stl_")
DIFFERENCE_ID = IdKind("cdf_")

SettlementId = Annotated[str, SETTLEMENT_ID]
DifferenceId = Annotated[str, DIFFERENCE_ID]

MAX_LINES = 2_000

DifferenceKind = Annotated[
    Literal[
        "order_amount", "cod_amount", "cod_fee", "carrier_fee", "insurance_fee", "remitted_amount", "unknown_parcel",
        "not_cash_on_delivery", "not_delivered", "remitted_before", "returned",
    ],
    EnumName("CodDifferenceKind"),
]  # fmt: skip

MEANINGS: dict[DifferenceKind, str] = {
    "order_amount": "the carrier collected more than the order owed",
    "cod_amount": "the carrier states another amount than it was to collect",
    "cod_fee": "the carrier deducted another fee for cash on delivery than it quoted",
    "carrier_fee": "the carrier deducted another price for the shipping than it quoted",
    "insurance_fee": "the carrier deducted another fee for the insurance than it quoted",
    "remitted_amount": "the amount paid out is not what the parts of the line add up to",
    "unknown_parcel": "no shipment of this provider has the number",
    "not_cash_on_delivery": "the shipment collects no cash",
    "not_delivered": "the shipment ended without a delivery",
    "remitted_before": "the cash of the shipment was paid out before",
    "returned": "the parcel came back although its cash was reported as collected",
}

ParcelNumber = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=100,
        examples=["JNE0001234567"],
        description="The parcel's awb or orderNo, or the id of our shipment.",
    ),
]
StatedAmount = Annotated[Decimal, Meta(examples=[None], description="As the carrier states it.")]


class SettlementLineIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One parcel of a statement. Parts that the carrier does not state are left out."""

    parcel: ParcelNumber
    amount: Annotated[
        Decimal, Meta(examples=[147534], description="What was paid out for it; negative if the carrier charged it.")
    ]
    cod_amount: StatedAmount | None = None
    cod_fee: StatedAmount | None = None
    carrier_fee: Annotated[StatedAmount, Meta(description="The price of the shipping.")] | None = None
    insurance_fee: StatedAmount | None = None


class SettlementIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A carrier's statement."""

    provider: Annotated[Provider, Meta(examples=["aggregator_carrier"])]
    reference: Annotated[
        str, Meta(min_length=1, max_length=100, examples=["COD-2026-01-31"], description="The statement's own number.")
    ]
    remitted_at: Annotated[datetime, Meta(description="When it was paid out.", examples=["2026-01-31T09:30:00Z"])]
    currency: Annotated[Currency, Meta(description="Defaults to the company's currency.")] | None = None
    lines: Annotated[list[SettlementLineIn], Meta(min_length=1, max_length=MAX_LINES)]


class Settlement(Struct, frozen=True, rename="camel"):
    """A statement, reconciled with the shipments."""

    id: SettlementId
    provider: Provider
    reference: Annotated[str, Meta(examples=["COD-2026-01-31"])]
    remitted_at: Timestamp
    currency: Annotated[str, Meta(examples=["IDR"])]
    parcels: Annotated[int, Meta(examples=[1], description="How many lines it has.")]
    differing: Annotated[int, Meta(examples=[0], description="How many of them are not as expected.")]
    expected_amount: Annotated[Decimal, Meta(examples=[147534])]
    remitted_amount: Annotated[Decimal, Meta(examples=[147534])]
    difference: Annotated[Decimal, Meta(examples=[0], description="What was paid out more, or, if negative, less.")]
    created_at: Timestamp


class SettlementLine(Struct, frozen=True, rename="camel"):
    """One parcel of a statement."""

    number: Annotated[int, Meta(examples=[1])]
    parcel: Annotated[str, Meta(examples=["JNE0001234567"])]
    shipment_id: Annotated[str | None, Meta(description="Null if no shipment has the number.")]
    cod_amount: Annotated[Decimal | None, Meta(description="This and the fees are as the carrier states them.")]
    cod_fee: Decimal | None
    carrier_fee: Decimal | None
    insurance_fee: Decimal | None
    expected_amount: Decimal
    remitted_amount: Decimal
    difference: Decimal


class CodDifference(Struct, frozen=True, rename="camel"):
    """An amount of cash on delivery that is not as expected."""

    id: DifferenceId
    kind: Annotated[
        DifferenceKind,
        Meta(description="; ".join(f"`{kind}`: {meaning}" for kind, meaning in MEANINGS.items()) + "."),
    ]
    parcel: Annotated[str, Meta(examples=["JNE0001234567"])]
    shipment_id: str | None
    order_id: str | None
    settlement_id: str | None
    line: Annotated[int | None, Meta(description="The number of the settlement's line.")]
    currency: str
    expected: Decimal
    actual: Decimal
    difference: Annotated[Decimal, Meta(description="What you got more, or, if negative, less.")]
    note: str | None
    created_at: Timestamp
    resolved_at: Timestamp | None


class CodResolutionIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How a difference was resolved."""

    note: Annotated[str, Meta(max_length=500, examples=["The carrier pays it with the next statement."])] | None = None


class SettlementExists(Conflict):
    """A settlement of this provider with the same reference and other lines already exists."""

    code = "SETTLEMENT_EXISTS"
    constraint = "settlements_reference_key"
    fix = "Use another reference, or the settlement that is there."
