"""Macros: several actions under one name, their structs and errors."""

from typing import Annotated

from msgspec import Meta, Raw, Struct

from sapa.http.errors import Conflict
from sapa.http.responses import StoredJson, Timestamp
from sapa.support.requests import TicketActions
from sapa.support.saved_replies.types import FilledReply, ReplyText
from sapa.support.types import AgentId, Ticket
from sapa.values.ids import IdKind

MACRO_ID = IdKind("mac_")
MacroId = Annotated[str, MACRO_ID]
MacroName = Annotated[str, Meta(min_length=1, max_length=100, examples=["Tutup sebagai spam"])]
MacroNote = Annotated[str, Meta(min_length=1, max_length=10_000)]


class Macro(Struct, frozen=True, rename="camel"):
    """Several actions under one name."""

    id: MacroId
    name: MacroName
    actions: Annotated[Raw, StoredJson(TicketActions)]
    note: Annotated[str | None, Meta(examples=[None], description="An internal note that is added.")]
    reply: Annotated[
        str | None, Meta(examples=["Halo {nama}."], description="A text for the agent to send, with placeholders.")
    ]
    created_at: Timestamp
    updated_at: Timestamp


class MacroIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A macro to create, or what a macro becomes."""

    name: MacroName
    actions: TicketActions = TicketActions()
    note: Annotated[MacroNote | None, Meta(examples=[None], description="An internal note that is added.")] = None
    reply: Annotated[
        ReplyText | None,
        Meta(
            examples=["Halo {nama}."],
            description="A text for the agent to send, with the placeholders of saved replies.",
        ),
    ] = None


class MacroUse(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The agent who applies the macro."""

    agent_id: AgentId


class AppliedMacro(Struct, frozen=True, rename="camel"):
    """A ticket after a macro."""

    ticket: Ticket
    reply: Annotated[FilledReply | None, Meta(description="The macro's text for this ticket. It is not sent yet.")]


class MacroExists(Conflict):
    """A macro with this name already exists. Choose another name."""

    code = "MACRO_EXISTS"
    constraint = "macros_name_key"
    fix = "Choose another name, or change the macro that has it."
