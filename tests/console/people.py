"""People at the console: creating them, and their browsers' requests."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import httpx
from argon2 import PasswordHasher

from sapa.db.pool import Database
from sapa.people import actions
from sapa.people.types import Role
from tests.conftest import TLS, Installation
from tests.factories import Environments

PASSWORD = "kopi gayo enak sekali"
_CHEAP_HASH = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
"""The hash determines its own cost, and tests sign in hundreds of times."""
_TOKEN = re.compile(r'name="token" value="([0-9a-f]{64})"')


async def make_person(database: Database, company: Environments, role: Role = Role.OWNER) -> str:
    """Creates a person with a password; returns the email."""
    email = f"{role}-{uuid4().hex[:10]}@toko.example"
    async with database.transaction() as tx:
        organisation = await actions.get_organisation(tx, company.live)
        link = await actions.invite(tx, organisation, email, f"Sari {role}", role)
        await tx.execute("UPDATE users SET password_hash = $2 WHERE email = $1", email, _CHEAP_HASH)
    await actions.use_link(database, link, PASSWORD, None, actions.Origin("127.0.0.1", "test"))
    return email


@asynccontextmanager
async def open_browser(installation: Installation, email: str | None = None) -> AsyncIterator[httpx.AsyncClient]:
    """A browser without scripts; signed in if an email is given."""
    async with httpx.AsyncClient(base_url=f"{installation.address}/console", timeout=120, verify=TLS) as client:
        if email is not None:
            response = await sign_in(client, email)
            assert response.status_code == 303, response.text
        yield client


async def sign_in(client: httpx.AsyncClient, email: str, password: str = PASSWORD, **headers: str) -> httpx.Response:
    form = {"token": await read_token(client, "/sign-in"), "email": email, "password": password}
    return await client.post("/sign-in", data=form, headers=headers)


async def follow(client: httpx.AsyncClient, link: str) -> httpx.Response:
    """The page behind a one-time link, by its secret."""
    return await client.get(f"/link/{link}", follow_redirects=True)


async def choose(client: httpx.AsyncClient, link: str, password: str = PASSWORD, **form: str) -> httpx.Response:
    """Chooses or enters a password through a one-time link."""
    page = await follow(client, link)
    if page.status_code != 200:
        return page
    data = {"token": find_token(page.text), "password": password, "again": password, **form}
    return await client.post("/link", data=data)


async def read_token(client: httpx.AsyncClient, path: str = "/live") -> str:
    """The token of this browser's forms."""
    return find_token((await client.get(path)).text)


def find_token(page: str) -> str:
    found = _TOKEN.search(page)
    assert found is not None, page
    return found[1]
