"""A console of the test's own: served in this process on the installation's database, with other settings."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from sapa.domains import ROUTES
from tests.conftest import Installation
from tests.console.people import PASSWORD
from tests.http.probe import open_app


@asynccontextmanager
async def open_own(
    installation: Installation, email: str | None = None, **variables: str
) -> AsyncIterator[httpx.AsyncClient]:
    """A browser without scripts at such a console; signed in when an address is given."""
    variables = {"SAPA_SECRET_KEY": installation.server.secret_key, **variables}
    async with open_app(installation, ROUTES, **variables) as client:
        client.base_url = httpx.URL("http://probe/console")
        if email is not None:
            answer = await client.post("/sign-in", data={"email": email, "password": PASSWORD})
            assert answer.status_code == 303, answer.text
        yield client
