"""The history of message requests at the console: found, shown, and never with a key."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from datetime import datetime
from html import unescape
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.console.error_words import name_code
from sapa.console.request_pages import build_text, mask
from sapa.console.translations import read_translations
from sapa.db.pool import Database
from sapa.http.keys import new_key
from tests.conftest import Installation
from tests.console.people import make_person, open_browser
from tests.factories import Environments, MadeKey, make_company, make_key
from tests.messaging.conftest import connect_messaging
from tests.messaging.send_steps import (
    build_message,
    get_record,
    list_records,
    make_code_template,
    make_template,
    send,
)

RAW = new_key("live")
_places = st.recursive(
    st.sampled_from([RAW, f"Bearer {RAW}", f"x{RAW}", "text", None, 7]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", RAW, "to"]), inner, max_size=3),
    max_leaves=8,
)
_names = st.sampled_from(["x-api-key", "X-API-KEY", "X_Api_Key", "xApiKey", "authorization", "Cookie", "x-other"])


@pytest.fixture
async def key(database: Database, company: Environments) -> MadeKey:
    return await make_key(database, company.test)


@pytest.fixture
async def sandbox(installation: Installation, key: MadeKey) -> AsyncIterator[httpx.AsyncClient]:
    async with connect_messaging(installation, key.raw) as client:
        yield client


@pytest.fixture
async def owner(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    async with open_browser(installation, await make_person(database, company)) as client:
        yield client


def address_of(record: dict[str, Any]) -> str:
    return f"/test/requests/{record['id']}?at={quote(record['createdAt'])}"


async def test_calls_are_listed_filtered_and_shown_without_their_key(
    owner: httpx.AsyncClient, sandbox: httpx.AsyncClient, key: MadeKey
) -> None:
    assert "No message requests yet" in (await owner.get("/test/requests")).text
    await make_template(sandbox)
    spelled = {"X-Api_Key": key.raw, "authorization": f"Bearer {key.raw}", "cookie": "session=very-secret"}
    body = build_message(metadata={"note": f"sent with {key.raw}"})
    message = (await sandbox.post("/messages/send", json=body, headers=spelled)).json()["data"]
    refused = await sandbox.post(
        "/messages/send-template", json={"to": "+628123456789", "template_name": "unknown_one", "params": []}
    )
    assert refused.status_code >= 400
    listed = (await owner.get("/test/requests")).text
    assert "plain message" in listed
    assert "template message" in listed
    assert refused.json()["error"]["code"] in listed
    record = await get_record(sandbox, message["messageId2"])
    shown = (await owner.get(address_of(record))).text
    assert message["messageId2"] in shown
    assert "sent with" in shown
    assert key.raw[-4:] in shown
    for page in (listed, shown):
        assert key.raw not in page
        assert key.raw.removeprefix("svc_test_")[:20] not in page
        assert "very-secret" not in page


async def test_a_call_can_be_made_again_with_the_command_that_is_shown(
    owner: httpx.AsyncClient, sandbox: httpx.AsyncClient, key: MadeKey
) -> None:
    record = await get_record(sandbox, (await send(sandbox, message="It's $HOME"))["messageId2"])
    shown = re.search('id="request-curl">(.*?)</code>', (await owner.get(address_of(record))).text, re.DOTALL)
    assert shown is not None
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", unescape(shown[1]) + " --silent",
        env={**os.environ, "SAPA_API_KEY": key.raw}, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, _ = await process.communicate()
    again = await get_record(sandbox, msgspec.json.decode(output)["data"]["messageId2"])
    assert again["request"]["body"] == record["request"]["body"]


def local(instant: str) -> str:
    """As a field for a date and time sends it, in the company's time zone."""
    return datetime.fromisoformat(instant).astimezone(ZoneInfo("Asia/Jakarta")).strftime("%Y-%m-%dT%H:%M")


async def test_each_filter_finds_its_own(owner: httpx.AsyncClient, sandbox: httpx.AsyncClient) -> None:
    await make_template(sandbox)
    plain = await send(sandbox)
    record = await get_record(sandbox, plain["messageId2"])
    await sandbox.post("/messages/send-template", json={"to": "+628123456789", "template_name": "unknown_one"})
    (failed,) = (await list_records(sandbox, templateId="unknown_one"))["data"]

    async def find(**query: str) -> set[str]:
        page = (await owner.get("/test/requests", params=query)).text
        return {one["id"] for one in (record, failed) if one["id"] in page}

    assert await find(responseId=plain["messageId2"]) == {record["id"]}
    assert await find(templateId="unknown_one") == {failed["id"]}
    assert await find(startDate=local(record["createdAt"]), endDate=local(failed["createdAt"])) == {
        record["id"],
        failed["id"],
    }
    assert await find(endDate="2020-01-31T09:30") == set()
    wrong = await owner.get("/test/requests", params={"startDate": "tomorrow"})
    assert 'aria-describedby="startDate-problem"' in wrong.text


async def test_a_long_call_is_cut_and_the_page_stays_small(
    owner: httpx.AsyncClient, sandbox: httpx.AsyncClient
) -> None:
    await sandbox.post("/messages/send", json=build_message(to="nobody", message='"' * 300_000))
    (record,) = (await list_records(sandbox))["data"]
    shown = await owner.get(address_of(record))
    assert len(shown.content) < 200_000
    assert "This is its beginning" in shown.text


async def test_another_companys_calls_are_out_of_reach(
    installation: Installation, database: Database, owner: httpx.AsyncClient
) -> None:
    other = await make_company(database)
    async with connect_messaging(installation, (await make_key(database, other.test)).raw) as api:
        message = await send(api)
        record = await get_record(api, message["messageId2"])
    assert (await owner.get(address_of(record))).status_code == 404
    assert (await owner.get(f"/test/requests/{record['id']}")).status_code == 404
    assert record["id"] not in (await owner.get(f"/test/requests?responseId={message['messageId2']}")).text


@given(headers=st.dictionaries(_names, st.sampled_from([RAW, f"Bearer {RAW}", "other-secret-of-theirs"])), body=_places)
def test_wherever_a_key_is_put_it_is_masked(headers: dict[str, str], body: Any) -> None:
    request = {"headers": headers, "body": body, "query": {"key": RAW}}
    text = build_text(mask({"request": request, "response": {"data": body}}))
    assert RAW not in text
    assert RAW[9:] not in text
    assert ("other-secret-of-theirs" in text) is (headers.get("x-other") == "other-secret-of-theirs")


@pytest.mark.parametrize(
    ("fields", "is_masked"),
    [
        ({"template_name": "login_code", "params": ["482913"]}, True),
        ({"template_name": "login_code", "params": ["482913", "more"]}, True),
        ({"template_name": "login_kode", "params": ["482913"]}, True),
        ({"template_name": "login_code", "components": {"body": ["482913"]}}, True),
        ({"template_name": "order_update", "template_source": "AUTH", "params": ["482913", "x"]}, True),
        ({"template_name": "order_update", "params": ["482913", "INV-1"]}, False),
    ],
)
async def test_one_time_codes_are_masked(
    owner: httpx.AsyncClient, sandbox: httpx.AsyncClient, fields: dict[str, Any], is_masked: bool
) -> None:
    await make_code_template(sandbox)
    await make_template(sandbox)
    body = {"to": "+628123456789", "sources": "MSGAPP_CLOUD", **fields}
    await sandbox.post("/messages/send-template", json=body)
    (record,) = (await list_records(sandbox))["data"]
    assert record["request"]["body"] == body  # the API's history is verbatim
    listed, shown = (await owner.get("/test/requests")).text, (await owner.get(address_of(record))).text
    assert fields["template_name"] in shown
    assert ("482913" in shown) is not is_masked
    assert "482913" not in listed


async def test_a_code_in_a_body_that_is_no_json_is_masked(owner: httpx.AsyncClient, sandbox: httpx.AsyncClient) -> None:
    await sandbox.post(
        "/messages/send-template", content=b'{"params": ["482913"', headers={"content-type": "application/json"}
    )
    (record,) = (await list_records(sandbox))["data"]
    assert "482913" in record["request"]["body"]
    assert "482913" not in (await owner.get(address_of(record))).text


@pytest.mark.parametrize("language", ["en", "id"])
@pytest.mark.parametrize("code", [
    "authentication", "authentication_international", "marketing", "marketing_lite", "referral_conversion", "service",
    "utility", "regular", "free_customer_service", "free_entry_point",
])  # fmt: skip
def test_what_a_channel_says_about_the_price_has_words(language: str, code: str) -> None:
    assert f"pricing {code}" in read_translations(language)
    assert name_code(language, "pricing", code) == read_translations(language)[f"pricing {code}"]
    assert name_code(language, "pricing", "group_service") == "group service", "a word that is not known yet"
