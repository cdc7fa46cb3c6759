"""The documents are built by the first request for each, and sent compressed to those who can read that."""

import asyncio

import httpx
import pytest

from sapa.domains import ROUTES
from sapa.http.endpoints import Base
from sapa.http.openapi import build_document
from tests.conftest import TLS, Installation
from tests.http.probe import open_app


async def test_first_requests_at_once_get_the_whole_document(installation: Installation) -> None:
    async with open_app(installation, ROUTES) as client:
        responses = await asyncio.gather(*(client.get(path) for path in ["/openapi.json", "/docs"] * 3))
        later = await client.get("/openapi.json")
    wanted = build_document(Base.CUSTOMER, "http://127.0.0.1:8000", ROUTES).encode()
    assert {response.status_code for response in responses} == {200}
    assert {response.content for response in [*responses[::2], later]} == {wanted}
    assert len({response.content for response in responses[1::2]}) == 1


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip", "gzip"),
        ("br, gzip;q=0.5", "gzip"),
        ("gzip;q=0", None),
        ("gzip;q=0.0, br", None),
        ("identity", None),
        ("", None),
    ],
)
@pytest.mark.parametrize("name", ["openapi.json", "docs"])
async def test_a_client_gets_it_compressed_only_if_it_accepts_that(
    installation: Installation, name: str, accepted: str, encoding: str | None
) -> None:
    async with httpx.AsyncClient(verify=TLS, timeout=120) as client:
        response = await client.get(f"{installation.customer_base}/{name}", headers={"accept-encoding": accepted})
        usual = await client.get(f"{installation.customer_base}/{name}")
    assert (response.status_code, response.headers.get("content-encoding")) == (200, encoding)
    assert response.headers["vary"] == "accept-encoding"
    assert response.content == usual.content


async def test_another_page_of_the_reference_does_not_exist(installation: Installation) -> None:
    async with httpx.AsyncClient(verify=TLS, timeout=120) as client:
        response = await client.get(f"{installation.customer_base}/docs/nothing")
    assert response.status_code in {401, 404}
