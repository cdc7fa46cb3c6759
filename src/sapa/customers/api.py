"""How customers are reached."""

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta

from sapa.access.types import Scope
from sapa.customers import actions, queries
from sapa.customers.types import (
    Customer,
    CustomerIn,
    CustomerPatch,
    EmailTaken,
    ExternalId,
    ExternalIdTaken,
    PhoneNumberTaken,
)
from sapa.db.listing import contains
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import Invalid, NotFound
from sapa.http.query_string import PageQuery, SearchText, check_period
from sapa.http.responses import Created, Page, build_page
from sapa.values.enum_names import EnumName
from sapa.values.ids import CustomerId
from sapa.values.text_folding import fold

routes = Routes(
    "/customers",
    base=Base.CUSTOMER,
    tag="Customers",
    about="The people who buy from the company: contact details, addresses, tags and your own data about them.",
)

Sort = Annotated[
    Literal[
        "updatedAt:desc", "updatedAt:asc", "createdAt:desc", "createdAt:asc", "firstName:asc", "firstName:desc",
        "lastName:asc", "lastName:desc", "email:asc", "email:desc",
    ],
    EnumName("CustomerSort"),
]  # fmt: skip


class CustomersQuery(PageQuery, frozen=True, kw_only=True):
    """Which customers to list, and in which order."""

    search: Annotated[SearchText, Meta(description="A part of the name, e-mail address or phone number.")] | None = None
    tags: (
        Annotated[list[str], Meta(description="Comma-separated. Only customers that have all of these tags.")] | None
    ) = None
    sort: Annotated[Sort, Meta(description="A field and a direction.")] = "updatedAt:desc"
    created_from: Annotated[datetime, Meta(description="Created at this instant or later.")] | None = None
    created_to: Annotated[datetime, Meta(description="Created at this instant or earlier.")] | None = None
    updated_from: Annotated[datetime, Meta(description="Updated at this instant or later.")] | None = None
    updated_to: Annotated[datetime, Meta(description="Updated at this instant or earlier.")] | None = None


@routes.get("", scope=Scope.CUSTOMERS_READ)
async def list_customers(call: Call, query: CustomersQuery) -> Page[Customer]:
    """List customers.

    The latest update comes first, unless you set `sort`. `search` matches part of the name or e-mail address, ignoring
    case and accents, or digits of the phone number. `tags` is comma-separated; a customer must have all of them.
    """
    customers, total = await queries.list_customers(
        call.db, call.company.id, _filters(query), query.sort, query.limit, query.offset
    )
    return build_page(customers, query.page, query.limit, total)


@routes.post("", scope=Scope.CUSTOMERS_WRITE, raises=[EmailTaken, PhoneNumberTaken, ExternalIdTaken])
async def create_customer(call: Call, body: CustomerIn) -> Customer:
    """Create a customer.

    An e-mail address or a phone number is required; each is unique within the company.
    """
    return await actions.create(call.db, call.company, body, call.actor)


@routes.get("/{id}", scope=Scope.CUSTOMERS_READ, raises=[NotFound])
async def get_customer(call: Call, id: CustomerId) -> Customer:
    """Get one customer."""
    return await queries.get_customer(call.db, call.company.id, id)


@routes.put("/{id}", scope=Scope.CUSTOMERS_WRITE, raises=[NotFound, EmailTaken, PhoneNumberTaken])
async def update_customer(call: Call, id: CustomerId, body: CustomerPatch) -> Customer:
    """Update a customer.

    A field that you leave out keeps its value; null clears it. Lists and additionalData are replaced as a whole.
    Consent is the exception: an entry of subscriptionStatus for CRM or a channel stays if you leave it out, and a
    customer who unsubscribed in person stays unsubscribed.
    """
    return await actions.update(call.db, call.company, id, body, call.actor)


@routes.delete("/{id}", scope=Scope.CUSTOMERS_DELETE, raises=[NotFound])
async def delete_customer(call: Call, id: CustomerId) -> None:
    """Delete a customer."""
    await actions.delete(call.db, call.company, id)


@routes.put(
    "/by-external-id/{externalId}", scope=Scope.CUSTOMERS_WRITE, raises=[EmailTaken, PhoneNumberTaken, ExternalIdTaken]
)
async def upsert_customer(call: Call, external_id: ExternalId, body: CustomerPatch) -> Customer | Created[Customer]:
    """Create or update a customer by your own id.

    Returns 201 if the customer is new; an e-mail address or a phone number is then required. Returns 200 if the
    customer exists; a field that you leave out then keeps its value.
    """
    customer, created = await actions.upsert(call.db, call.company, external_id, body, call.actor)
    return Created(customer) if created else customer


def _filters(query: CustomersQuery) -> dict[str, Any]:
    check_period("createdFrom", query.created_from, "createdTo", query.created_to)
    check_period("updatedFrom", query.updated_from, "updatedTo", query.updated_to)
    filters = {
        "search": query.search and _patterns(query.search),
        "tags": query.tags,
        "created_from": query.created_from,
        "created_to": query.created_to,
        "updated_from": query.updated_from,
        "updated_to": query.updated_to,
    }
    return {name: value for name, value in filters.items() if value is not None}


def _patterns(search: str) -> list[str]:
    """The text itself and, when it looks like a phone number, its digits without the trunk zero. The search text has
    three lines, and the phone number is the last."""
    text = fold(search)
    if not text:
        raise Invalid.field("search", "must not be blank")
    patterns = [contains(text)]
    digits = "".join(filter(str.isdigit, search)).lstrip("0")
    if digits and not any(char.isalpha() or char == "@" for char in search):
        patterns.append("%\n%\n" + contains(digits))
    return patterns
