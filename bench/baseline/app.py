"""The baseline: the same endpoints the way most people would write them today.

FastAPI, an SQLAlchemy session by dependency, the API key looked up in its table, Pydantic models for the answers,
line items in a table of their own and loaded with their orders in one more statement, count(*) for the totals. It does
less than Sapa (no rate limit, no event, no counter, no log, no metrics), and it may use the same indexes, the ones for
searching and filtering included.
"""

import hashlib
import os
from collections.abc import AsyncIterator
from itertools import product
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, HTTPException, Query
from sqlalchemy import ColumnElement, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import selectinload

from bench.baseline.models import ApiKey, Customer, LineItem, Order, OrderNumber
from bench.baseline.schemas import (
    CustomerOut,
    CustomerRefOut,
    LineItemIn,
    Many,
    MetaOut,
    One,
    OrderIn,
    OrderOut,
    OrderPatch,
)
from sapa.orders.pricing.types import LINE_ITEM_ID
from sapa.orders.types import ORDER_ID

engine = create_async_engine(
    os.environ["SAPA_DATABASE_URL"].replace("postgresql://", "postgresql+asyncpg://", 1),
    pool_size=int(os.environ["SAPA_DATABASE_POOL"]),
    max_overflow=0,
)
session_factory = async_sessionmaker(engine, expire_on_commit=False)

STATUSES = ["active", "archived", "cancelled", "refunded"]
FULFILLMENT_STATUSES = ["unfulfilled", "fulfilled"]
FINANCIAL_STATUSES = ["pending", "paid", "refunded"]
WITH_LINES = selectinload(Order.line_items)

app = FastAPI()


async def open_session() -> AsyncIterator[AsyncSession]:
    async with session_factory() as session:
        yield session


Session = Annotated[AsyncSession, Depends(open_session)]


async def find_company(x_api_key: Annotated[str, Header()], session: Session) -> int:
    digest = hashlib.sha256(x_api_key.encode()).digest()
    key = await session.scalar(select(ApiKey).where(ApiKey.hash == digest, ApiKey.status == "active"))
    if key is None:
        raise HTTPException(401, "The API key is not valid.")
    if not {"customers:READ", "orders:READ", "orders:WRITE"} <= set(key.scopes):
        raise HTTPException(403, "The API key lacks the scope.")
    return key.company_id


Company = Annotated[int, Depends(find_company)]
Page = Annotated[int, Query(ge=1)]
Limit = Annotated[int, Query(ge=1, le=100)]


@app.get("/customer/v1/orders/{id}")
async def get_order(id: str, company: Company, session: Session) -> One[OrderOut]:
    return One(data=OrderOut.model_validate(await _load_order(session, company, id)))


@app.get("/customer/v1/orders")
async def list_orders(
    company: Company,
    session: Session,
    search: str | None = None,
    status: str | None = None,
    fulfillment_status: Annotated[str | None, Query(alias="fulfillmentStatus")] = None,
    page: Page = 1,
    limit: Limit = 20,
) -> Many[OrderOut]:
    chosen = [Order.company_id == company]
    if search is not None:
        chosen.append(_is_found(search))
    if status or fulfillment_status:
        chosen.append(Order.cell.in_(_cells(status, fulfillment_status)))
    total = await session.scalar(select(func.count()).select_from(Order).where(*chosen)) or 0
    newest = select(Order).where(*chosen).order_by(Order.created_at.desc(), Order.id.desc()).options(WITH_LINES)
    orders = await session.scalars(newest.limit(limit).offset((page - 1) * limit))
    return Many(data=[OrderOut.model_validate(order) for order in orders], meta=_meta(page, limit, total))


@app.post("/customer/v1/orders", status_code=201)
async def create_order(given: OrderIn, company: Company, session: Session) -> One[OrderOut]:
    customer = await session.get(Customer, (company, given.customer_id))
    if customer is None:
        raise HTTPException(400, "customerId is not the id of a customer.")
    id = ORDER_ID.new()
    total = sum(line.price * line.quantity for line in given.line_items)
    order = Order(
        company_id=company,
        id=id,
        order_id=id,
        order_number=str(await _next_number(session, company)),
        total=total,
        subtotal=total,
        outstanding=total,
        currency="IDR",
        notes=given.notes,
        customer=CustomerRefOut.model_validate(customer).model_dump(by_alias=True),
        shipping_address=None,
        tags=given.tags,
        customer_id=customer.id,
        customer_text=f"{customer.first_name} {customer.last_name}".lower(),
        line_items=[_line(company, place, line) for place, line in enumerate(given.line_items, start=1)],
    )
    session.add(order)
    await session.commit()
    return One(data=OrderOut.model_validate(order))


@app.put("/customer/v1/orders/{id}")
async def update_order(id: str, given: OrderPatch, company: Company, session: Session) -> One[OrderOut]:
    order = await _load_order(session, company, id)
    for name, value in given.model_dump(exclude_unset=True).items():
        setattr(order, name, value)
    await session.commit()
    return One(data=OrderOut.model_validate(order))


@app.get("/customer/v1/customers/{id}")
async def get_customer(id: str, company: Company, session: Session) -> One[CustomerOut]:
    customer = await session.get(Customer, (company, id))
    if customer is None:
        raise HTTPException(404, "resource not found")
    return One(data=CustomerOut.model_validate(customer))


@app.get("/customer/v1/customers")
async def list_customers(
    company: Company, session: Session, search: str | None = None, page: Page = 1, limit: Limit = 20
) -> Many[CustomerOut]:
    chosen = [Customer.company_id == company]
    if search is not None:
        chosen.append(Customer.search_text.contains(search.lower()))
    total = await session.scalar(select(func.count()).select_from(Customer).where(*chosen)) or 0
    newest = select(Customer).where(*chosen).order_by(Customer.updated_at.desc(), Customer.id.desc())
    customers = await session.scalars(newest.limit(limit).offset((page - 1) * limit))
    return Many(data=[CustomerOut.model_validate(customer) for customer in customers], meta=_meta(page, limit, total))


async def _load_order(session: AsyncSession, company: int, id: str) -> Order:
    order = await session.get(Order, (company, id), options=[WITH_LINES])
    if order is None:
        raise HTTPException(404, "resource not found")
    return order


async def _next_number(session: AsyncSession, company: int) -> int:
    next_one = update(OrderNumber).where(OrderNumber.company_id == company).values(last=OrderNumber.last + 1)
    return await session.scalar(next_one.returning(OrderNumber.last)) or 0


def _line(company: int, place: int, given: LineItemIn) -> LineItem:
    return LineItem(
        company_id=company,
        id=LINE_ITEM_ID.new(),
        position=place,
        quantity=given.quantity,
        price=given.price,
        title=given.title,
        product_variant=None,
        total=given.price * given.quantity,
        charged=given.price * given.quantity,
    )


def _is_found(search: str) -> ColumnElement[bool]:
    return or_(
        Order.customer_text.contains(search.lower()),
        Order.id.startswith(search),
        Order.order_id.startswith(search),
        Order.order_number.startswith(search),
    )


def _cells(status: str | None, fulfillment_status: str | None) -> list[str]:
    """By the column that has the index."""
    choices: list[Any] = [[status] if status else STATUSES]
    choices += [[fulfillment_status] if fulfillment_status else FULFILLMENT_STATUSES, FINANCIAL_STATUSES]
    return ["/".join(cell) for cell in product(*choices)]


def _meta(page: int, limit: int, total: int) -> MetaOut:
    return MetaOut(page=page, limit=limit, total=total, has_next_page=page * limit < total)
