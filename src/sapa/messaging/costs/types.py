"""What messages cost: rates, costs, reports."""

from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Literal

from msgspec import Meta, Struct

from sapa.messaging.channels.interface import Source
from sapa.values.enum_names import EnumName

ELSEWHERE = "*"
"""The country of a rate for all countries without one of their own."""

Grouping = Annotated[Literal["day", "template", "channel"], EnumName("CostGrouping")]
Day = Annotated[str, Meta(examples=["2026-01-31"], extra_json_schema={"format": "date"})]
Count = Annotated[int, Meta(examples=[1])]

_CATEGORY = "In the channel's words. WhatsApp: marketing, utility, authentication, service and others."
_TYPE = "In the channel's words. WhatsApp: regular, free_customer_service, free_entry_point. Null if it does not say."
_AMOUNT = "What it costs, by the rate when it arrived; null before, and if there is no rate. It never changes."


class MessagePricing(Struct, frozen=True):
    """How the channel charges for the message, and what that costs."""

    category: Annotated[str, Meta(examples=["utility"], description=_CATEGORY)]
    type: Annotated[str | None, Meta(examples=["regular"], description=_TYPE)]
    billable: bool
    country: Annotated[str | None, Meta(examples=["ID"], description="The recipient's, ISO 3166; null if unknown.")]
    amount: Annotated[Decimal | None, Meta(examples=[356.65], description=_AMOUNT)] = None
    currency: Annotated[str | None, Meta(examples=["IDR"], description="Null without an amount.")] = None


class ChargedMessage(Struct, frozen=True):
    """A message that arrived."""

    id: str
    source: str
    template_id: str | None
    at: datetime
    """When it arrived."""


class NewCost(Struct, frozen=True):
    """What a message cost, to insert; the fields are the columns."""

    message_id: str
    source: str
    template_id: str | None
    category: str
    country: str
    is_billable: bool
    amount: Decimal | None
    currency: str | None
    charged_at: datetime


class FoundRate(Struct, frozen=True):
    price: Decimal
    currency: str


class UnpricedCost(Struct, frozen=True):
    """A cost without an amount, because there was no rate."""

    message_id: str
    category: str
    country: str
    charged_at: datetime


class MessageRate(Struct, frozen=True, rename="camel"):
    """The price of a message to a country from a day on."""

    company_id: int | None
    """None: for all companies."""
    country: str
    category: str
    starts_on: date
    currency: str
    price: Decimal


class RateImport(Struct, frozen=True):
    """What an import changed."""

    rates: int
    created: int
    changed: int
    removed: int


class CostFigures(Struct, frozen=True, rename="camel"):
    """What messages cost, in one currency."""

    currency: Annotated[str | None, Meta(examples=["IDR"], description="Null: messages without a rate.")]
    messages: Annotated[Count, Meta(description="Messages that arrived and whose pricing the channel reported.")]
    billable_messages: Count
    unpriced_messages: Annotated[Count, Meta(description="Billable ones without a rate.", examples=[0])]
    amount: Annotated[Decimal | None, Meta(examples=[356.65], description="Null if none of them has a rate.")]


class CostLine(CostFigures, frozen=True, rename="camel"):
    """The costs of one day, template or channel."""

    day: Annotated[Day | None, Meta(description="Null if not grouped by it.")]
    template_id: Annotated[
        str | None, Meta(examples=[None], description="The template's name; null for other messages, and likewise.")
    ]
    source: Annotated[Source | None, Meta(examples=[None], description="Null if not grouped by it.")]


class CostReport(Struct, frozen=True, rename="camel"):
    """The costs of messages that arrived in a period."""

    start_date: Day
    end_date: Day
    time_zone: Annotated[str, Meta(examples=["Asia/Jakarta"], description="The company's; days are in it.")]
    lines: Annotated[list[CostLine], Meta(description="One for each day, template or channel, and currency.")]
    totals: Annotated[list[CostFigures], Meta(description="Of all lines, by currency.")]


class CostSelection(Struct, frozen=True):
    """Which costs."""

    first: date
    last: date
    template_id: str | None = None
    source: Source | None = None
