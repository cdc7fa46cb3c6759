"""Saved replies: their structs and errors."""

from typing import Annotated

from msgspec import Meta, Struct

from sapa.http.errors import Conflict
from sapa.http.responses import Timestamp
from sapa.values.ids import IdKind

SAVED_REPLY_ID = IdKind("srep_")
SavedReplyId = Annotated[str, SAVED_REPLY_ID]
Shortcut = Annotated[
    str,
    Meta(
        pattern="^[a-z0-9][a-z0-9_-]{0,49}$",
        examples=["ongkir"],
        description="What an agent types after a slash: lower-case letters, digits, - and _.",
    ),
]
ReplyText = Annotated[
    str, Meta(min_length=1, max_length=10_000, examples=["Halo {nama}, pesanan {pesanan} sudah dikirim: {resi}."])
]


class SavedReply(Struct, frozen=True, rename="camel"):
    """A text that agents use again and again."""

    id: SavedReplyId
    shortcut: Shortcut
    text: ReplyText
    created_at: Timestamp
    updated_at: Timestamp


class SavedReplyIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A saved reply to create, or what a saved reply becomes."""

    shortcut: Shortcut
    text: ReplyText


class FilledReply(Struct, frozen=True, rename="camel"):
    """A saved reply for one ticket."""

    text: Annotated[str, Meta(examples=["Halo Ayu, pesanan 1001 sudah dikirim: JNE0001234567."])]
    missing: Annotated[
        list[str],
        Meta(examples=[[]], description="Placeholders without a value for this ticket. They are still in the text."),
    ]


class PlaceholderValues(Struct, frozen=True):
    """What placeholders stand for in a ticket; None for what there is not."""

    name: str | None
    order: str | None
    tracking: str | None


class SavedReplyExists(Conflict):
    """A saved reply with this shortcut already exists. Choose another shortcut."""

    code = "SAVED_REPLY_EXISTS"
    constraint = "saved_replies_shortcut_key"
    fix = "Choose another shortcut, or change the saved reply that has it."
