"""Imports: their structs and errors."""

from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct

from sapa.http.errors import ApiError, Conflict, Invalid
from sapa.http.responses import Timestamp
from sapa.http.schemas import DocumentedAs
from sapa.values.enum_names import EnumName
from sapa.values.ids import IdKind

IMPORT_ID = IdKind("imp_")
ImportId = Annotated[str, IMPORT_ID]

Resource = Annotated[Literal["customers", "products", "orders"], EnumName("ImportResource")]
Format = Annotated[Literal["csv", "ndjson", "xlsx"], EnumName("ImportFormat")]
Status = Annotated[Literal["draft", "queued", "running", "succeeded", "partial", "failed"], EnumName("ImportStatus")]
Outcome = Literal["created", "updated", "unchanged"]
SourceName = Annotated[
    str,
    DocumentedAs(
        Annotated[
            Literal["shopify", "woocommerce", "tokopedia", "tiktok", "shopee", "medusa", "spreadsheet"],
            EnumName("ImportSource"),
        ]
    ),
]
"""A system that exports files, or a spreadsheet for any other table."""

LONGEST_MESSAGE = 1_000


class Import(Struct, frozen=True, rename="camel"):
    """An uploaded file and the progress of its import."""

    id: ImportId
    resource: Resource
    format: Format
    status: Annotated[
        Status,
        Meta(
            description="draft: uploaded and not started. partial: the import is complete, and some lines failed.",
        ),
    ]
    source: Annotated[
        SourceName | None,
        Meta(examples=[None], description="The system that exported the file; null for a file with our fields."),
    ]
    effects: Annotated[
        bool,
        Meta(description="Whether the records earn points, take stock and emit events; history does not."),
    ]
    dry_run: Annotated[bool, Meta(examples=[False])]
    size: Annotated[int, Meta(examples=[52_400], description="Bytes of the file.")]
    position: Annotated[int, Meta(examples=[52_400], description="Bytes processed so far.")]
    rows: Annotated[int, Meta(examples=[300], description="Records read so far.")]
    created: Annotated[int, Meta(examples=[280])]
    updated: Annotated[int, Meta(examples=[15])]
    unchanged: Annotated[int, Meta(examples=[3], description="Records that were already stored with the same values.")]
    failed: Annotated[int, Meta(examples=[2])]
    error: Annotated[str | None, Meta(examples=[None], description="Why the file as a whole could not be imported.")]
    created_at: Timestamp
    updated_at: Timestamp
    finished_at: Timestamp | None


class Problem(Struct, frozen=True):
    """A line that was not imported, and why."""

    line: Annotated[int, Meta(examples=[17], description="The record's first line in the file, from 1.")]
    field: Annotated[str, Meta(examples=["email"], description="Empty if the problem concerns the whole line.")]
    message: Annotated[str, Meta(examples=["must be an e-mail address, such as ayu@example.com"])]
    column: Annotated[
        str | None,
        Meta(
            examples=["No HP"],
            description="The column that the field was mapped from, as the file's header names it; null without a"
            " mapping.",
        ),
    ] = None


class ImportJob(Struct, frozen=True):
    """An import that a holder works on."""

    id: str
    resource: Resource
    format: Format
    dry_run: bool
    size: int
    position: int
    line: int
    source: str | None = None
    effects: bool = True
    reading: Raw | None = None
    """How the file is read before it is imported, as `sapa.imports.conversion` has it."""
    converted_size: int | None = None

    @property
    def is_converted(self) -> bool:
        return self.converted_size is not None


class NewImport(Struct, frozen=True, kw_only=True):
    """The columns of an import when it begins."""

    resource: str
    format: str
    dry_run: bool
    is_upload: bool
    fingerprint: bytes
    size: int
    status: str = "queued"
    source: str | None = None
    effects: bool = True
    reading: bytes | None = None
    converted_size: int | None = None


class UnusableFile(Invalid):
    """The file cannot be imported."""


class ImportStarted(Conflict):
    """The import has been started already; upload the file again to read it in another way."""

    code = "IMPORT_STARTED"
    fix = "Get the import to see its progress. To read the file in another way, upload it again."


class ImportRunning(Conflict):
    """This file is already being imported; wait until it is done."""

    code = "IMPORT_RUNNING"
    fix = "Get the import until it is done."


class ImportTakenOver(Exception):
    """Another holder has taken the import over; nothing of this batch was stored."""


def build_problem(line: int, error: ApiError) -> Problem:
    field, message = "", error.message
    if error.details:
        field, message = error.details[0].field, error.details[0].message
    return Problem(line, _storable(field), _storable(message))


def _storable(text: str) -> str:
    return text.replace("\0", "\ufffd")[:LONGEST_MESSAGE]
