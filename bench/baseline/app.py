"""The baseline: the same endpoints the way most people would write them today.

FastAPI, an SQLAlchemy session by dependency, the API key looked up in its table, Pydantic models for the answers,
count(*) for the totals. It does less than Sapa (no rate limit, no event, no log, no metrics), and it may use the same
indexes, the one for searching included.
"""

import hashlib
import os
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, HTTPException, Query
from sqlalchemy import Select, func, select
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine

from bench.baseline.models import ApiKey, Customer
from bench.baseline.schemas import CustomerIn, CustomerOut, Many, MetaOut, One
from sapa.customers.types import CUSTOMER_ID

engine = create_async_engine(
    os.environ["SAPA_DATABASE_URL"].replace("postgresql://", "postgresql+asyncpg://", 1),
    pool_size=int(os.environ["SAPA_DATABASE_POOL"]),
    max_overflow=0,
)
session_factory = async_sessionmaker(engine, expire_on_commit=False)

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
    if not {"customers:READ", "customers:WRITE"} <= set(key.scopes):
        raise HTTPException(403, "The API key lacks the scope.")
    return key.company_id


Company = Annotated[int, Depends(find_company)]


@app.get("/customer/v1/customers/{id}")
async def get_customer(id: str, company: Company, session: Session) -> One[CustomerOut]:
    customer = await session.get(Customer, (company, id))
    if customer is None:
        raise HTTPException(404, "resource not found")
    return One(data=CustomerOut.model_validate(customer))


@app.get("/customer/v1/customers")
async def list_customers(
    company: Company,
    session: Session,
    search: str | None = None,
    page: Annotated[int, Query(ge=1)] = 1,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> Many[CustomerOut]:
    total = await session.scalar(_chosen(select(func.count()).select_from(Customer), company, search)) or 0
    newest = _chosen(select(Customer), company, search).order_by(Customer.updated_at.desc(), Customer.id.desc())
    customers = await session.scalars(newest.limit(limit).offset((page - 1) * limit))
    return Many(
        data=[CustomerOut.model_validate(customer) for customer in customers],
        meta=MetaOut(page=page, limit=limit, total=total, has_next_page=page * limit < total),
    )


@app.post("/customer/v1/customers", status_code=201)
async def create_customer(given: CustomerIn, company: Company, session: Session) -> One[CustomerOut]:
    fields = given.model_dump()
    searched = "\n".join([f"{given.first_name} {given.last_name}", given.email or "", given.phone_number or ""])
    customer = Customer(
        company_id=company,
        id=CUSTOMER_ID.new(),
        email_key=given.email and given.email.lower(),
        search_text=searched.lower(),
        addresses=[],
        additional_data={},
        subscription_status=[],
        **fields,
    )
    session.add(customer)
    await session.commit()
    return One(data=CustomerOut.model_validate(customer))


def _chosen(statement: Select[Any], company: int, search: str | None) -> Select[Any]:
    statement = statement.where(Customer.company_id == company)
    return statement if search is None else statement.where(Customer.search_text.contains(search.lower()))
