"""A console of the test's own: served in this process on the installation's database, with other settings."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from sapa.domains import ROUTES
from tests.conftest import Installation
from tests.console.people import sign_in
from tests.http.probe import open_app


@asynccontextmanager
async def open_own(
    installation: Installation, email: str | None = None, peer: str = "127.0.0.1", **variables: str
) -> AsyncIterator[httpx.AsyncClient]:
    """A browser without scripts at such a console; signed in if an email is given. It uses TLS if the console's address
    does."""
    variables = {"SAPA_SECRET_KEY": installation.server.secret_key, **variables}
    async with open_app(installation, ROUTES, peer, **variables) as client:
        scheme = httpx.URL(variables.get("SAPA_PUBLIC_URL", "http://probe")).scheme
        client.base_url = httpx.URL(f"{scheme}://probe/console")
        if email is not None:
            response = await sign_in(client, email)
            assert response.status_code == 303, response.text
        yield client
