"""The history of an order: who changed what, and when."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Raw, Struct

from sapa.http.responses import StoredJson, Timestamp
from sapa.values.change_actor import ChangeActor
from sapa.values.enum_names import EnumName
from sapa.values.ids import IdKind

HISTORY_ID = IdKind("hist_")
HistoryId = Annotated[str, HISTORY_ID]

Action = Annotated[
    Literal["created", "updated", "edited", "payment_recorded", "refund_recorded", "fulfilled"],
    EnumName("OrderHistoryAction"),
]


class FieldChange(Struct, frozen=True):
    """One field that changed."""

    field: Annotated[str, Meta(examples=["financialStatus"], description="Of a line: `lineItems[li_…].quantity`.")]
    before: Annotated[Any, Meta(examples=["pending"])]
    after: Annotated[Any, Meta(examples=["paid"])]


class OrderHistoryEntry(Struct, frozen=True, rename="camel"):
    """One change of an order."""

    id: HistoryId
    action: Annotated[Action, Meta(examples=["updated"])]
    actor: Annotated[Raw | None, StoredJson(ChangeActor | None)]
    reference: Annotated[str | None, Meta(examples=[None], description="The id of the payment, refund or fulfilment.")]
    changes: Annotated[Raw, StoredJson(list[FieldChange])]
    created_at: Timestamp


class NewHistoryEntry(Struct, frozen=True):
    """An entry to record with the change."""

    action: Action
    actor: ChangeActor
    reference: str | None
    changes: list[FieldChange]
