"""An operation that will end says so in its responses and in the documents."""

from datetime import date

import pytest

from sapa.access.types import Scope
from sapa.db.pool import Database
from sapa.http.deprecation import deprecate
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.openapi import build_document
from tests.conftest import Installation
from tests.factories import Environments, make_key
from tests.http.probe import Thing, open_app


def build_routes() -> Routes:
    routes = Routes("/endings", base=Base.CUSTOMER, tag="Endings")

    @routes.get("/old", scope=Scope.ORDERS_READ)
    @deprecate(since=date(2026, 1, 31), ends=date(2027, 1, 31))
    async def get_old(call: Call) -> Thing:
        """Get the old one."""
        return Thing("old")

    @routes.get("/new", scope=Scope.ORDERS_READ)
    async def get_new(call: Call) -> Thing:
        """Get the new one."""
        return Thing("new")

    return routes


async def test_responses_say_since_when_and_until_when(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.live)
    async with open_app(installation, [build_routes()]) as client:
        old = await client.get("/endings/old", headers={"x-api-key": key.raw})
        new = await client.get("/endings/new", headers={"x-api-key": key.raw})
    assert (old.status_code, new.status_code) == (200, 200)
    assert old.headers["deprecation"] == "@1769817600"
    assert old.headers["sunset"] == "Sun, 31 Jan 2027 00:00:00 GMT"
    assert "deprecation" not in new.headers


def test_the_document_marks_it() -> None:
    paths = build_document(Base.CUSTOMER, "http://localhost", [build_routes()]).content["paths"]
    assert paths["/endings/old"]["get"]["deprecated"] is True
    assert "deprecated" not in paths["/endings/new"]["get"]


def test_callers_have_a_year() -> None:
    with pytest.raises(TypeError, match="less than the year"):
        deprecate(since=date(2026, 1, 31), ends=date(2026, 12, 31))
