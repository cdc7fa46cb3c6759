"""Labels: their structs and errors."""

from typing import Annotated

from msgspec import Meta, Struct

from sapa.http.errors import Conflict
from sapa.http.responses import Timestamp
from sapa.support.types import LabelId

LabelName = Annotated[str, Meta(min_length=1, max_length=50, examples=["Keluhan"])]
LabelColor = Annotated[
    str, Meta(pattern="^#[0-9a-f]{6}$", examples=["#0f766e"], description="Six lower-case hexadecimal digits.")
]


class Label(Struct, frozen=True, rename="camel"):
    """A word that agents put on tickets."""

    id: LabelId
    name: LabelName
    color: LabelColor
    created_at: Timestamp
    updated_at: Timestamp


class LabelIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A label to create, or what a label becomes."""

    name: LabelName
    color: LabelColor = "#4b5c57"


class LabelExists(Conflict):
    """A label with this name already exists. Choose another name."""

    code = "LABEL_EXISTS"
    constraint = "ticket_labels_name_key"
    fix = "Choose another name, or use the label that has it."
