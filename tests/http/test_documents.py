"""The documents are built by the first request for one."""

import asyncio

from sapa.domains import ROUTES
from sapa.http.endpoints import Base
from sapa.http.openapi import build_document
from tests.conftest import Installation
from tests.http.probe import open_app


async def test_first_requests_at_once_get_the_whole_document(installation: Installation) -> None:
    async with open_app(installation, ROUTES) as client:
        responses = await asyncio.gather(*(client.get(path) for path in ["/openapi.json", "/docs"] * 3))
        later = await client.get("/openapi.json")
    wanted = build_document(Base.CUSTOMER, "http://127.0.0.1:8000", ROUTES).encode()
    assert {response.status_code for response in responses} == {200}
    assert {response.content for response in [*responses[::2], later]} == {wanted}
    assert len({response.content for response in responses[1::2]}) == 1
