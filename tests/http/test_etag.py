"""ETag and If-None-Match on single resources."""

import httpx
import pytest

from tests.factories import make_customer


@pytest.fixture
async def place(api: httpx.AsyncClient) -> str:
    return f"/customers/{(await make_customer(api))['id']}"


async def tag_of(api: httpx.AsyncClient, place: str) -> str:
    return str((await api.get(place)).headers["etag"])


async def test_a_resource_has_a_strong_tag_that_stays_while_it_does(api: httpx.AsyncClient, place: str) -> None:
    tag = await tag_of(api, place)
    assert tag.startswith('"')
    assert tag.endswith('"')
    assert await tag_of(api, place) == tag
    await api.put(place, json={"firstName": "Changed"})
    assert await tag_of(api, place) != tag


@pytest.mark.parametrize("header", ["{tag}", "W/{tag}", "*", '"other", {tag}', '"other",W/{tag} , "third"'])
async def test_who_has_it_already_gets_a_304(api: httpx.AsyncClient, place: str, header: str) -> None:
    tag = await tag_of(api, place)
    response = await api.get(place, headers={"if-none-match": header.format(tag=tag)})
    assert (response.status_code, response.content) == (304, b"")
    assert response.headers["etag"] == tag
    assert "content-type" not in response.headers
    assert "ratelimit-remaining" in response.headers


@pytest.mark.parametrize("header", ['"other"', "", "{bare}", 'W/"other"', '"{bare}x"', "**"])
async def test_who_has_something_else_gets_it_whole(api: httpx.AsyncClient, place: str, header: str) -> None:
    tag = await tag_of(api, place)
    response = await api.get(place, headers={"if-none-match": header.format(bare=tag.strip('"'))})
    assert response.status_code == 200
    assert response.json()["data"]["id"] in place


async def test_several_headers_are_one_list(api: httpx.AsyncClient, place: str) -> None:
    tag = await tag_of(api, place)
    headers = [("if-none-match", '"other"'), ("if-none-match", tag)]
    assert (await api.get(place, headers=headers)).status_code == 304


async def test_a_changed_resource_is_sent_again(api: httpx.AsyncClient, place: str) -> None:
    tag = await tag_of(api, place)
    await api.put(place, json={"firstName": "Changed"})
    response = await api.get(place, headers={"if-none-match": tag})
    assert response.status_code == 200
    assert response.json()["data"]["firstName"] == "Changed"


async def test_head_has_the_tag_and_honours_it(api: httpx.AsyncClient, place: str) -> None:
    tag = await tag_of(api, place)
    assert (await api.head(place)).headers["etag"] == tag
    assert (await api.head(place, headers={"if-none-match": tag})).status_code == 304


async def test_equal_resources_of_two_ids_have_two_tags(api: httpx.AsyncClient, place: str) -> None:
    other = f"/customers/{(await make_customer(api))['id']}"
    assert await tag_of(api, place) != await tag_of(api, other)


async def test_lists_and_writes_have_no_tag(api: httpx.AsyncClient, place: str) -> None:
    responses = [await api.get("/customers"), await api.put(place, json={}), await api.get("/customers/unknown")]
    assert all("etag" not in response.headers for response in responses)


async def test_a_star_does_not_conjure_up_what_does_not_exist(api: httpx.AsyncClient) -> None:
    response = await api.get("/customers/cust_01jc9y3q5me8w92v7x4t6r0n1k", headers={"if-none-match": "*"})
    assert response.status_code == 404
