"""The customer timeline: its entries and their types."""

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct

from sapa.http.endpoints import camel
from sapa.http.responses import Envelope, Timestamp
from sapa.values.enum_names import EnumName, words_of
from sapa.values.ids import CustomerId, IdKind

TIMELINE_ID = IdKind("tl_")

Category = Annotated[Literal["support", "loyalty", "system"], EnumName("TimelineCategory")]
Source = Annotated[Literal["api", "console", "system"], EnumName("TimelineSource")]

TYPES: dict[str, tuple[Category, str]] = {
    "customer_created": ("system", "The customer was created."),
    "customer_updated": ("system", "The customer's details changed."),
    "note_added": ("support", "A person wrote a note about the customer."),
    "order_created": ("system", "The customer placed an order."),
    "order_paid": ("system", "An order was paid."),
    "order_fulfilled": ("system", "An order was fulfilled."),
    "order_cancelled": ("system", "An order was cancelled."),
    "order_refunded": ("system", "An order was refunded."),
    "points_earned": ("loyalty", "The customer earned points."),
    "points_adjusted": ("loyalty", "Points were added or deducted manually."),
    "points_reserved": ("loyalty", "Points were reserved for a redemption."),
    "points_released": ("loyalty", "Reserved points became available again."),
    "points_redeemed": ("loyalty", "Points were spent."),
    "points_expired": ("loyalty", "Points expired."),
    "points_reversed": ("loyalty", "Points of an order were taken back, or spent points were returned."),
    "reward_redeemed": ("loyalty", "The customer redeemed a reward; its points are reserved."),
    "redemption_committed": ("loyalty", "The points of a redemption were spent; its voucher is valid."),
    "redemption_released": ("loyalty", "A redemption was released."),
    "redemption_expired": ("loyalty", "A redemption was not committed in time."),
    "redemption_failed": ("loyalty", "A redemption failed, and its points were returned."),
    "ticket_opened": ("support", "The customer wrote, and a ticket was opened."),
    "customer_wrote": ("support", "The customer wrote again in a ticket after a reply."),
    "ticket_assigned": ("support", "A ticket was assigned to an agent, or returned to the queue."),
    "ticket_answered": ("support", "An agent replied to the customer."),
    "ticket_resolved": ("support", "A ticket was resolved."),
    "ticket_reopened": ("support", "A resolved ticket was opened again."),
}
"""Each type with its category and meaning; add new types here."""

if TYPE_CHECKING:
    TimelineEntryType = str
else:
    TimelineEntryType = Annotated[Literal[tuple(TYPES)], EnumName("TimelineEntryType")]


def _describe_types() -> str:
    lines = [f"- `{name}` ({category}): {meaning}" for name, (category, meaning) in TYPES.items()]
    return "\n".join(["What happened:", "", *lines])


def _wire_name(name: str) -> str:
    """camelCase, but for the one field that is known by its other name."""
    return name if name == "edit_log" else camel(name)


class TimelineEntry(Struct, frozen=True, rename=_wire_name):
    """One event in a customer's history."""

    id: Annotated[str, TIMELINE_ID]
    customer_id: CustomerId
    category: Category
    type: Annotated[TimelineEntryType, Meta(examples=["order_created"], description=_describe_types())]
    source: Annotated[Source, Meta(description="Where it came from.")]
    edit_log: Annotated[
        str | None, Meta(examples=["firstName: Ayu → Ayu Putri"], description="A readable description of the change.")
    ]
    notes: Annotated[str | None, Meta(examples=["Asked by phone"], description="A note written by a person.")]
    actor_name: Annotated[
        str | None,
        Meta(examples=["sari@toko.example"], description="The person of the console behind it, where known."),
    ]
    created_at: Timestamp
    updated_at: Timestamp


class TimelineNoteIn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A note about a customer, which only the company's people see."""

    notes: Annotated[str, Meta(min_length=1, max_length=2000, examples=["Suka biji sangrai medium"])]


class TimelineMeta(Struct, frozen=True, rename="camel"):
    """The position of a page in the timeline."""

    start_cursor: Annotated[
        str | None, Meta(description="The cursor of the first entry; send it as `before` for newer entries.")
    ]
    end_cursor: Annotated[
        str | None, Meta(description="The cursor of the last entry; send it as `after` for older entries.")
    ]
    has_next_page: bool
    has_previous_page: bool
    total: Annotated[int, Meta(examples=[1], description="The number of entries of this category and period.")]


class TimelinePage(Envelope, frozen=True):
    """A part of a customer's timeline, newest first."""

    paging = "after"
    data: list[TimelineEntry]
    meta: TimelineMeta


CATEGORIES = words_of(Category)


class EncodedEntries(Struct, frozen=True):
    """Entries to insert, with their ids in the order of the entries."""

    ids: list[str]
    document: bytes
