"""Scorecards: how well carriers, services and areas do, in figures that lead to their parcels."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal

from msgspec import Meta, Struct

from sapa.http.responses import Timestamp
from sapa.shipping.providers import Provider
from sapa.shipping.states import Status
from sapa.shipping.types import ShipmentId
from sapa.values.enum_names import EnumName

UNKNOWN = "unknown"
"""The service or the area of a shipment that names none."""

Grouping = Annotated[Literal["carrier", "service", "area", "all"], EnumName("ScorecardGrouping")]
Figure = Annotated[
    Literal["parcels", "delivered", "timed", "late", "failed_attempts", "returned", "lost"], EnumName("ScorecardFigure")
]

FIGURES: dict[Figure, str] = {
    "parcels": "all parcels that were picked up",
    "delivered": "delivered parcels",
    "timed": "delivered parcels with a quoted time",
    "late": "parcels that took more days than quoted",
    "failed_attempts": "parcels with a failed attempt to deliver them",
    "returned": "parcels that the carrier brought back",
    "lost": "lost parcels",
}
"""Each figure that counts parcels, and which ones."""


class Scorecard(Struct, frozen=True, rename="camel"):
    """The figures of one carrier, or of one of its services or areas."""

    provider: Provider
    carrier: Annotated[str, Meta(examples=["kiriminaja"], description="The adapter, or the provider without one.")]
    service: Annotated[str | None, Meta(examples=["JNE Reguler"], description="Null if not grouped by it.")]
    area: Annotated[str | None, Meta(examples=["Bandung"], description="The receiver's city; null likewise.")]
    parcels: Annotated[int, Meta(description="Those that were picked up.", examples=[1])]
    delivered: Annotated[int, Meta(examples=[1])]
    timed: Annotated[int, Meta(description="Delivered ones with a quoted time.", examples=[1])]
    late: Annotated[int, Meta(description="Those that took more days than quoted.", examples=[0])]
    on_time_rate: Annotated[
        Decimal | None, Meta(description="Percent of the timed ones; null without any.", examples=[100])
    ]
    quoted_days: Annotated[Decimal | None, Meta(description="The most that was quoted, on average.", examples=[2])]
    actual_days: Annotated[
        Decimal | None, Meta(description="What they took, on average, in calendar days.", examples=[2])
    ]
    slowest_days: Annotated[Decimal | None, Meta(description="Nine of ten took no longer than this.", examples=[2])]
    failed_attempts: Annotated[int, Meta(description="Parcels with a failed attempt to deliver them.", examples=[0])]
    failed_attempt_rate: Annotated[
        Decimal | None, Meta(description="Percent of those that were picked up.", examples=[0])
    ]
    returned: Annotated[int, Meta(description="Those that the carrier brought back.", examples=[0])]
    return_rate: Annotated[
        Decimal | None, Meta(description="Percent of those that were delivered, returned or lost.", examples=[0])
    ]
    lost: Annotated[int, Meta(examples=[0])]


class ScorecardReport(Struct, frozen=True, rename="camel"):
    """Scorecards of a period, most parcels first."""

    created_from: Timestamp
    created_to: Timestamp
    scorecards: list[Scorecard]
    truncated: Annotated[
        bool,
        Meta(description="Whether rows with fewer parcels are left out: it has at most 1,000.", examples=[False]),
    ]


class ScorecardParcel(Struct, frozen=True, rename="camel"):
    """A parcel behind a figure."""

    id: ShipmentId
    awb: str | None
    provider: Provider
    carrier: str
    service: str
    area: str
    shipping_status: Status
    quoted_days: Decimal | None
    actual_days: int | None
    failed_attempts: int
    picked_up_at: Timestamp | None
    delivered_at: Timestamp | None
    created_at: Timestamp


class ReportPeriod(Struct, frozen=True):
    """By the creation of the shipments; the end is not part of it."""

    start: datetime
    end: datetime
