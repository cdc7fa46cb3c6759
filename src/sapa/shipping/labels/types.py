"""Files to print: labels, packing slips and manifests."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from sapa.http.errors import Conflict
from sapa.http.responses import Timestamp
from sapa.shipping.labels.content import Format
from sapa.shipping.types import SHIPMENT_ID
from sapa.values.enum_names import EnumName
from sapa.values.ids import IdKind

BATCH_ID = IdKind("lbl_")
BatchId = Annotated[str, BATCH_ID]

MAX_SHIPMENTS = 500

PrintFormat = Annotated[
    Format, Meta(description="a6: a page of 105 × 148 mm. roll80: a roll of 80 mm. A manifest is always A4.")
]
Document = Annotated[
    Literal["label", "packing_slip", "manifest"],
    EnumName("PrintedDocument"),
    Meta(description="A label or a packing slip for each shipment, or one pickup manifest for each courier."),
]
LabelSource = Annotated[
    Literal["sapa", "carrier"],
    EnumName("LabelSource"),
    Meta(description="Whose labels: ours, or the carrier's own where it has them, in the carrier's format."),
]


class LabelBatchIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Shipments to print."""

    ids: Annotated[
        list[Annotated[str, Meta(pattern=SHIPMENT_ID.pattern, examples=[SHIPMENT_ID.example])]],
        Meta(min_length=1, max_length=MAX_SHIPMENTS, description="In the order in which they are printed."),
    ]
    format: PrintFormat = "a6"
    document: Document = "label"
    source: LabelSource = "sapa"


class LabelBatch(Struct, frozen=True, rename="camel"):
    """A file that the worker makes. It is kept for seven days."""

    id: BatchId
    document: Document
    format: PrintFormat
    source: LabelSource
    status: Annotated[
        Literal["queued", "running", "succeeded", "failed"], EnumName("LabelBatchStatus"), Meta(examples=["queued"])
    ]
    shipments: Annotated[int, Meta(examples=[120], description="How many shipments it contains.")]
    size: Annotated[int | None, Meta(description="Bytes of the file, once it is made.")]
    error: Annotated[str | None, Meta(description="Why it could not be made.")]
    created_at: Timestamp
    finished_at: Timestamp | None


class PrintJob(Struct, frozen=True):
    """A file that a worker holds."""

    id: str
    document: Document
    format: Format
    source: LabelSource
    shipment_ids: list[str]
    attempts: int
    """This one included."""


class WaitingBatch(Struct, frozen=True):
    """A file that no worker makes at present."""

    company_id: int
    id: str


class PrintingFailed(Conflict):
    """The file could not be made. Fix the shipments that its error names, and create it again."""

    code = "PRINTING_FAILED"
    fix = "Get the file: its error names the shipments. Fix them or leave them out, and create the file again."
