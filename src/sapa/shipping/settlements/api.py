"""How settlements and differences are reached."""

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from sapa.access.types import Scope
from sapa.http.bodies import Upload
from sapa.http.endpoints import Base, Call, Routes, ToolTraits
from sapa.http.errors import NotFound, Unauthorized
from sapa.http.query_string import PageQuery
from sapa.http.responses import Created, Page, build_page
from sapa.shipping.providers import Provider
from sapa.shipping.settlements import actions, queries
from sapa.shipping.settlements.statement_files import parse_statement
from sapa.shipping.settlements.types import (
    SETTLEMENT_ID,
    CodDifference,
    CodResolutionIn,
    DifferenceId,
    DifferenceKind,
    Settlement,
    SettlementExists,
    SettlementId,
    SettlementIn,
    SettlementLine,
)
from sapa.shipping.types import SHIPMENT_ID
from sapa.values.enum_names import EnumName, words_of

routes = Routes(
    "/shipping",
    base=Base.CUSTOMER,
    tag="Cash on delivery",
    about="What carriers collected for you, their statements, and where the two differ.",
    product="CRM",
    refusal=Unauthorized,
)

State = Annotated[Literal["open", "resolved"], EnumName("CodDifferenceState")]


class StatementQuery(Struct, frozen=True, kw_only=True, rename="camel"):
    """Which statement the file is."""

    provider: Annotated[Provider, Meta(description="Whose parcels it lists.")]
    reference: Annotated[str, Meta(min_length=1, max_length=100, description="The statement's own number.")]
    remitted_at: Annotated[datetime, Meta(description="When it was paid out.")]


class SettlementsQuery(PageQuery, frozen=True, kw_only=True):
    """Which settlements to list."""

    provider: Annotated[Provider, Meta(description="Settlements of this provider.")] | None = None
    differing: Annotated[Literal["true"], Meta(description="Only those with a difference.")] | None = None


class DifferencesQuery(PageQuery, frozen=True, kw_only=True):
    """Which differences to list."""

    state: Annotated[State, Meta(description="Whether it was resolved.")] | None = None
    kind: Annotated[DifferenceKind, Meta(description="Differences of this kind.")] | None = None
    shipment_id: (
        Annotated[str, Meta(pattern=SHIPMENT_ID.pattern, description="Differences of this shipment.")] | None
    ) = None
    settlement_id: (
        Annotated[str, Meta(pattern=SETTLEMENT_ID.pattern, description="Differences of this settlement.")] | None
    ) = None


@routes.post("/settlements", scope=Scope.ORDERS_WRITE, status=200, raises=[SettlementExists])
async def create_settlement(call: Call, body: SettlementIn) -> Settlement | Created[Settlement]:
    """Reconcile a carrier's statement of cash on delivery.

    Each line is compared with its shipment, to the last digit: the amount collected, the fees, and what was paid out.
    The shipment gets `codRemittedAt` and `codRemittedAmount`, and everything that differs is listed in cod-differences.
    The same statement again returns the stored settlement with status 200.
    """
    return await actions.settle(call.db, call.company, body)


@routes.post(
    "/settlements/file",
    scope=Scope.ORDERS_WRITE,
    status=200,
    raises=[SettlementExists],
    tool=ToolTraits(hidden="It takes a file; create_settlement takes the lines."),
)
async def upload_settlement(call: Call, query: StatementQuery, body: Upload) -> Settlement | Created[Settlement]:
    """Reconcile a statement from a file.

    Send the CSV that the carrier's dashboard exports, or NDJSON with one line of a settlement on each. A CSV needs a
    column for the parcel (`awb`, `resi`, `order id`, …) and one for the amount paid out (`amount`, `net`, `dana cair`,
    …); columns for `cod`, `cod fee`, `ongkir` and `asuransi` are compared as well, and others are ignored.
    """
    lines = parse_statement(body.media_type, body.content)
    statement = SettlementIn(
        provider=query.provider, reference=query.reference, remitted_at=query.remitted_at, lines=lines
    )
    return await actions.settle(call.db, call.company, statement)


@routes.get("/settlements", scope=Scope.ORDERS_READ)
async def list_settlements(call: Call, query: SettlementsQuery) -> Page[Settlement]:
    """List settlements, newest first."""
    filters = {"provider": query.provider, "differing": True if query.differing else None}
    wanted = {name: value for name, value in filters.items() if value is not None}
    found, total = await queries.list_settlements(call.db, call.company.id, wanted, query.limit, query.offset)
    return build_page(found, query.page, query.limit, total)


@routes.get("/settlements/{id}", scope=Scope.ORDERS_READ, raises=[NotFound])
async def get_settlement(call: Call, id: SettlementId) -> Settlement:
    """Get one settlement."""
    return await queries.get_settlement(call.db, call.company.id, id)


@routes.get("/settlements/{id}/lines", scope=Scope.ORDERS_READ, raises=[NotFound])
async def list_settlement_lines(call: Call, id: SettlementId, query: PageQuery) -> Page[SettlementLine]:
    """List the lines of a settlement, in the order of the statement."""
    settlement = await queries.get_settlement(call.db, call.company.id, id)
    lines = await queries.list_lines(call.db, call.company.id, id, query.limit, query.offset)
    return build_page(lines, query.page, query.limit, settlement.parcels)


@routes.get("/cod-differences", scope=Scope.ORDERS_READ)
async def list_cod_differences(call: Call, query: DifferencesQuery) -> Page[CodDifference]:
    """List differences of cash on delivery, newest first.

    A difference is an amount that is not as expected: the carrier collected more than the order owed, deducted another
    fee than it quoted, or paid out more or less. It stays open until it is resolved.
    """
    found, total = await queries.list_differences(call.db, call.company.id, _filters(query), query.limit, query.offset)
    return build_page(found, query.page, query.limit, total)


@routes.get("/cod-differences/{id}", scope=Scope.ORDERS_READ, raises=[NotFound])
async def get_cod_difference(call: Call, id: DifferenceId) -> CodDifference:
    """Get one difference of cash on delivery."""
    return await queries.get_difference(call.db, call.company.id, id)


@routes.post("/cod-differences/{id}/resolve", scope=Scope.ORDERS_WRITE, status=200, raises=[NotFound])
async def resolve_cod_difference(
    call: Call, id: DifferenceId, body: CodResolutionIn = CodResolutionIn()
) -> CodDifference:
    """Resolve a difference of cash on delivery.

    It changes no amount: it says that a person has dealt with it, and how. A second call changes nothing.
    """
    return await actions.resolve(call.db, call.company, id, body.note)


def _filters(query: DifferencesQuery) -> dict[str, Any]:
    filters = {"shipment_id": query.shipment_id, "settlement_id": query.settlement_id, "cells": _cells(query)}
    return {name: value for name, value in filters.items() if value is not None}


def _cells(query: DifferencesQuery) -> list[str] | None:
    if query.state is None and query.kind is None:
        return None
    kinds = [query.kind] if query.kind else words_of(DifferenceKind)
    states = [query.state] if query.state else words_of(State)
    return [f"{kind}/{state}" for kind in kinds for state in states]
