"""Mappings of columns: their structs and errors."""

from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct

from sapa.http.errors import Conflict
from sapa.http.responses import StoredJson, Timestamp
from sapa.imports.types import Resource
from sapa.values.enum_names import EnumName
from sapa.values.ids import IdKind

MAPPING_ID = IdKind("imap_")
MappingId = Annotated[str, MAPPING_ID]

DecimalSign = Annotated[Literal[".", ","], EnumName("DecimalSign")]
DayOrder = Annotated[Literal["dmy", "mdy"], EnumName("DayOrder")]

ColumnName = Annotated[str, Meta(min_length=1, max_length=500)]
FieldName = Annotated[str, Meta(min_length=1, max_length=200)]
MappingName = Annotated[str, Meta(min_length=1, max_length=100, examples=["Daftar toko"])]


class ImportMapping(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Which column of a file is which field."""

    columns: Annotated[
        dict[ColumnName, FieldName | None],
        Meta(
            max_length=1_000,
            examples=[{"Nama Lengkap": "name", "No HP": "phoneNumber", "Kota": "address.city", "Catatan": None}],
            description="The field of each column, by the column's name in the header in any case. null: not read.",
        ),
    ]
    keep_columns: Annotated[
        bool,
        Meta(examples=[True], description="Keep columns without a field as the customer's additionalData."),
    ] = False
    decimal_sign: Annotated[
        DecimalSign | None, Meta(examples=[None], description="Decided by each column's amounts unless you set it.")
    ] = None
    day_order: Annotated[
        DayOrder | None, Meta(examples=[None], description="Decided by each column's dates unless you set it.")
    ] = None


class SavedMapping(Struct, frozen=True, rename="camel"):
    """A mapping that can be used again for files with the same columns."""

    id: MappingId
    resource: Resource
    name: MappingName
    mapping: Annotated[Raw, StoredJson(ImportMapping)]
    created_at: Timestamp
    updated_at: Timestamp


class SavedMappingIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A mapping to save."""

    resource: Resource
    name: MappingName
    mapping: ImportMapping


class MappingExists(Conflict):
    """A mapping of this name already exists for the resource; choose another name or change that one."""

    code = "MAPPING_EXISTS"
    constraint = "import_mappings_name_key"
    fix = "Choose another name, or change the mapping that has it."
