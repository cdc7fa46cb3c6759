"""People at the console: how a test gets one in, and what a browser of theirs asks for."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import httpx

from sapa.db.pool import Database
from sapa.people import actions
from sapa.people.types import Role
from tests.conftest import Installation
from tests.factories import Environments

PASSWORD = "kopi gayo enak sekali"
_TOKEN = re.compile(r'name="token" value="([0-9a-f]{64})"')


async def make_person(database: Database, company: Environments, role: Role = Role.OWNER) -> str:
    """Somebody with a password; their e-mail address."""
    email = f"{role}-{uuid4().hex[:10]}@toko.example"
    async with database.transaction() as tx:
        organisation = await actions.get_organisation(tx, company.live)
        link = await actions.invite(tx, organisation, email, f"Sari {role}", role)
    await actions.use_link(database, link, PASSWORD, None, actions.Origin("127.0.0.1", "test"))
    return email


@asynccontextmanager
async def open_browser(installation: Installation, email: str | None = None) -> AsyncIterator[httpx.AsyncClient]:
    """A browser without scripts; signed in when an address is given."""
    async with httpx.AsyncClient(base_url=f"{installation.address}/console", timeout=30) as client:
        if email is not None:
            answer = await client.post("/sign-in", data={"email": email, "password": PASSWORD})
            assert answer.status_code == 303, answer.text
        yield client


async def read_token(client: httpx.AsyncClient) -> str:
    """The token of this session's forms."""
    found = _TOKEN.search((await client.get("/live")).text)
    assert found is not None
    return found[1]
