"""Pictures of products: uploaded, served to everybody, and deleted with the last product that names them."""

from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from tests.conftest import TLS, Installation
from tests.factories import Environments, make_product
from tests.messaging.files.corpus import PDF, SVG, make_image

KEPT = "SELECT EXISTS (SELECT FROM files WHERE company_id = $1 AND id = $2 AND expires_at IS NULL)"
Json = dict[str, Any]


async def upload(
    api: httpx.AsyncClient, content: bytes, status: int = 201, headers: dict[str, str] | None = None
) -> Json:
    answer = await api.post("/product-pictures", content=content, headers=headers)
    assert answer.status_code == status, answer.text
    found: Json = answer.json()["data" if status == 201 else "error"]
    return found


async def fetch(installation: Installation, url: str) -> httpx.Response:
    """Without a key, at this installation's port."""
    async with httpx.AsyncClient(verify=TLS, timeout=120) as browser:
        return await browser.get(installation.address + "/pictures/" + url.partition("/pictures/")[2])


async def is_expiring(database: Database, company: Environments, picture: Json) -> bool:
    async with database.connection() as db:
        return not await db.fetchval(KEPT, company.live, picture["id"])


async def test_a_picture_is_served_to_everybody_who_knows_its_address(
    installation: Installation, api: httpx.AsyncClient
) -> None:
    content = make_image("PNG")
    picture = await upload(api, content)
    assert (picture["mediaType"], picture["size"]) == ("image/png", len(content))
    shown = await fetch(installation, picture["pictureUrl"])
    assert (shown.status_code, shown.content) == (200, content)
    assert shown.headers["content-type"] == "image/png"
    assert shown.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert (await fetch(installation, picture["pictureUrl"] + "?size=small")).status_code == 200
    for altered in (
        picture["pictureUrl"][:-1],
        picture["pictureUrl"][:-4] + "AAAA",
        "/pictures/1",
        "/pictures/1-" + "a" * 32,
    ):
        assert (await fetch(installation, altered)).status_code == 404


@pytest.mark.parametrize("content", [PDF, SVG, b"\0\1\2"], ids=["pdf", "svg", "unknown"])
async def test_only_pictures_are_taken(api: httpx.AsyncClient, content: bytes) -> None:
    assert "JPEG, PNG, WebP or GIF" in (await upload(api, content, 415))["message"]


async def test_a_repeated_upload_is_one_picture(api: httpx.AsyncClient) -> None:
    content, headers = make_image("JPEG"), {"idempotency-key": "cover-1"}
    assert await upload(api, content, headers=headers) == await upload(api, content, headers=headers)


async def test_a_picture_is_kept_as_long_as_a_product_names_it(
    database: Database, company: Environments, api: httpx.AsyncClient
) -> None:
    picture = await upload(api, make_image("WEBP"))
    assert await is_expiring(database, company, picture)
    url, elsewhere = picture["pictureUrl"], "https://cdn.example/kopi.jpg"
    first = await make_product(api, media=url, medias=[elsewhere])
    second = await make_product(api, variants=[{"title": "M", "price": 1, "media": url}])
    assert not await is_expiring(database, company, picture)
    await api.put(f"/products/{first['id']}", json={"media": elsewhere})
    assert not await is_expiring(database, company, picture)
    assert (await api.delete(f"/products/{second['id']}")).status_code == 204
    assert await is_expiring(database, company, picture)


async def test_an_address_of_another_company_keeps_nothing(
    database: Database, company: Environments, api: httpx.AsyncClient
) -> None:
    picture = await upload(api, make_image("GIF"))
    foreign = picture["pictureUrl"].replace(f"/pictures/{company.live}-", f"/pictures/{company.test}-")
    await make_product(api, media=foreign)
    assert await is_expiring(database, company, picture)
