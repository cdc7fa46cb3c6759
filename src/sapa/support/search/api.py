"""Endpoint for the search over tickets."""

from typing import Annotated

from msgspec import Meta, Struct

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.support.search import actions
from sapa.support.search.types import TicketSearch

routes = Routes("/tickets", base=Base.MESSAGING, tag="Tickets")


class SearchQuery(Struct, frozen=True, kw_only=True, rename="camel"):
    """What to look for."""

    query: Annotated[
        str,
        Meta(
            min_length=3,
            max_length=200,
            examples=["Ayu"],
            description="Part of a name, an e-mail address, a phone number or a message; or an id.",
        ),
    ]


@routes.get("/search", scope=Scope.MESSAGES_READ)
async def search_tickets(call: Call, query: SearchQuery) -> TicketSearch:
    """Search tickets, those with the newest messages first; at most 50.

    Finds every contact, with a customer record or without, by name, address or part of the number on any channel; ids
    of tickets and customers; and messages that have all the words. Case is ignored. A term that matches very many
    is searched in the newest tickets only; `meta.newestOnly` says whether older tickets may match, too.
    """
    return await actions.search(call.db, call.company, query.query)
