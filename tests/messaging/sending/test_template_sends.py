"""Sends of templates: one-time codes stay secret, values are checked, and mismatches are explained."""

import json
from functools import partial
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from tests.conftest import Installation
from tests.factories import Environments
from tests.http.wire import eventually
from tests.messaging.send_steps import NUMBER, get_message, get_record, list_records, make_code_template, make_template

Json = dict[str, Any]

CODE = "48291375"
TABLES = (
    "messages", "message_events", "events", "tickets", "ticket_events", "timeline_entries", "api_requests",
    "deferred_messages", "idempotency_records",
)  # fmt: skip


def build(**fields: Any) -> Json:
    return {"to": NUMBER, "sources": "MSGAPP_CLOUD", "template_name": "order_update", **fields}


async def read_sent(client: httpx.AsyncClient) -> Json:
    """The newest message that the simulator received."""
    found = (await client.get("/sandbox/outbox")).json()["data"]
    sent: Json = json.loads(next(request["body"] for request in found if request["path"].endswith("/messages")))
    return sent


@pytest.mark.parametrize("key", [None, "login-1"])
async def test_a_code_goes_to_the_channel_and_is_stored_only_in_the_sealed_history(
    installation: Installation,
    sandbox: httpx.AsyncClient,
    database: Database,
    company: Environments,
    key: str | None,
) -> None:
    await make_code_template(sandbox)
    body = build(template_name="login_code", template_source="AUTH", params=[CODE])
    headers = {} if key is None else {"idempotency-key": key}
    answer = await sandbox.post("/messages/send-template", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    sent = answer.json()["data"]
    assert CODE in sent["body"]
    components = (await read_sent(sandbox))["template"]["components"]
    assert json.dumps(components).count(CODE) == 2
    stored = await get_message(sandbox, sent["messageId2"])
    assert CODE not in json.dumps(stored)
    assert "••••••" in stored["body"]
    record = await get_record(sandbox, sent["messageId2"])
    assert record["request"]["body"] == body
    assert record["response"]["data"] == sent
    if key is not None:
        again = await sandbox.post("/messages/send-template", json=body, headers=headers)
        assert again.headers["idempotency-replayed"] == "true"
        assert again.json()["data"] == sent | {"body": stored["body"]}
    await check_tables(database, company.test)
    assert CODE not in installation.log.read_text()


async def check_tables(database: Database, company_id: int) -> None:
    """The code is in no row, neither as text nor as bytes, which PostgreSQL shows in hexadecimal."""
    async with database.connection() as db:
        for table in TABLES:
            rows = await db.fetch(f"SELECT t::text AS row FROM {table} t WHERE company_id = $1", company_id)
            for row in rows:
                assert CODE not in row["row"], table
                assert CODE.encode().hex() not in row["row"], table


async def test_a_mail_with_a_code_is_sealed_until_it_is_sent_again(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    await make_code_template(sandbox)
    body = build(to="rate@simulator.test", sources="MAIL", template_name="login_code", params=[CODE])
    answer = await sandbox.post("/messages/send-template", json=body)
    assert (answer.status_code, CODE in answer.text) == (202, True)
    await check_tables(database, company.test)
    for tries, seconds in ((2, 60), (3, 240)):
        await sandbox.post("/sandbox/clock/advance", json={"seconds": seconds})
        await eventually(partial(find_mails, sandbox, tries))
    await check_tables(database, company.test)


async def find_mails(client: httpx.AsyncClient, count: int) -> list[str] | None:
    """The mails with the code, once there are this many."""
    found = (await client.get("/sandbox/outbox")).json()["data"]
    mails = [request["body"] for request in found if request["source"] == "MAIL" and CODE in request["body"]]
    return mails if len(mails) == count else None


async def test_a_code_that_a_channel_repeats_in_its_refusal_is_hidden(sandbox: httpx.AsyncClient) -> None:
    """The simulator refuses this recipient; the error has no value of the template."""
    await make_code_template(sandbox)
    body = build(to="+12015550112", template_name="login_code", params=[CODE])
    refused = await sandbox.post("/messages/send-template", json=body)
    assert (refused.status_code, CODE in refused.text) == (502, False)


async def test_a_mismatch_lists_what_the_template_takes(sandbox: httpx.AsyncClient) -> None:
    link = {"type": "url", "text": "Lacak", "url": "https://s.id/{{1}}"}
    await make_template(sandbox, header="Nota {{1}}", buttons=[link])
    refused = await sandbox.post("/messages/send-template", json=build(params=["Ayu"]))
    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == (409, "TEMPLATE_PARAMS_MISMATCH")
    assert [detail["field"] for detail in error["details"]] == [
        "params",
        "components.body",
        "components.header",
        "components.buttons[0]",
    ]
    assert "expected 4" in error["message"]
    (record,) = (await list_records(sandbox))["data"]
    assert record["response"]["error"]["code"] == "TEMPLATE_PARAMS_MISMATCH"


@pytest.mark.parametrize("value", ["a\nb", "a\tb", "a     b", "x" * 1024])
async def test_values_that_whatsapp_refuses_are_refused_before_the_call(sandbox: httpx.AsyncClient, value: str) -> None:
    await make_template(sandbox, footer="Toko Kopi")
    refused = await sandbox.post("/messages/send-template", json=build(params=[value, "INV-1"]))
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "VALIDATION_ERROR")
    assert refused.json()["error"]["message"].startswith("params: ")
    mail = build(to="ayu@example.com", sources="MAIL", params=[value, "INV-1"])
    assert (await sandbox.post("/messages/send-template", json=mail)).status_code == 200


async def test_the_end_of_a_url_is_a_value_like_any_other(sandbox: httpx.AsyncClient) -> None:
    await make_template(sandbox, buttons=[{"type": "url", "text": "Lacak", "url": "https://s.id/{{1}}"}])
    refused = await sandbox.post("/messages/send-template", json=build(params=["Ayu", "INV-1", "a\nb"]))
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "VALIDATION_ERROR")
    assert "buttons[0]" in refused.json()["error"]["message"]


async def test_other_channels_get_the_text_with_everything_in_it(sandbox: httpx.AsyncClient) -> None:
    buttons = [
        {"type": "url", "text": "Lacak", "url": "https://s.id/{{1}}"},
        {"type": "copy_code", "example": "KOPI10"},
    ]
    await make_template(sandbox, category="MARKETING", header="Nota {{1}}", footer="Toko Kopi", buttons=buttons)
    params = ["Ayu", "INV-1", "1042", "abc", "KOPI20"]
    body = build(to="ayu@example.com", sources="MAIL", params=params)
    sent = (await sandbox.post("/messages/send-template", json=body)).json()["data"]
    text = "Nota 1042\n\nHalo Ayu, pesanan INV-1 dikirim.\n\nToko Kopi\n\nLacak: https://s.id/abc\nKOPI20"
    assert sent["body"] == text


async def test_a_place_on_the_equator_is_sent_in_plain_digits(sandbox: httpx.AsyncClient) -> None:
    await make_template(sandbox, name="shop", header={"type": "location"}, body="Toko kami")
    place = {"latitude": 0.00002, "longitude": 109.3333}
    send = {
        "to": NUMBER,
        "sources": "MSGAPP_CLOUD",
        "template_name": "shop",
        "components": {"header": {"location": place}},
    }
    answer = await sandbox.post("/messages/send-template", json=send)
    assert answer.json()["data"]["body"] == "0.00002,109.3333\n\nToko kami", answer.text
    [header] = (await read_sent(sandbox))["template"]["components"]
    assert header["parameters"][0]["location"] == {"latitude": "0.00002", "longitude": "109.3333"}


async def test_a_template_that_is_not_approved_is_refused_by_name(sandbox: httpx.AsyncClient) -> None:
    created = await make_template(sandbox, name="sim_rejected_promo", body="Halo, promo baru.")
    assert (created["status"], created["reason"]) == ("REJECTED", None)
    refused = await sandbox.post("/messages/send-template", json=build(template_name="sim_rejected_promo"))
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "TEMPLATE_NOT_APPROVED")
    assert "sim_rejected_promo" in refused.json()["error"]["message"]


INTERACTIVES: dict[str, tuple[Json, Json]] = {
    "flow": (
        {"type": "flow", "body": "Isi data", "button": "Isi", "flowId": "12", "flowToken": "t", "screen": "S1"},
        {
            "type": "flow",
            "body": {"text": "Isi data"},
            "action": {
                "name": "flow",
                "parameters": {
                    "mode": "published",
                    "flow_message_version": "3",
                    "flow_token": "t",
                    "flow_id": "12",
                    "flow_cta": "Isi",
                    "flow_action": "navigate",
                    "flow_action_payload": {"screen": "S1"},
                },
            },
        },
    ),
    "product": (
        {"type": "product", "catalogId": "77", "productId": "SKU"},
        {"type": "product", "action": {"catalog_id": "77", "product_retailer_id": "SKU"}},
    ),
    "product_list": (
        {
            "type": "product_list",
            "catalogId": "77",
            "header": "Kopi",
            "body": "Pilih",
            "sections": [{"title": "Arabika", "productIds": ["SKU"]}],
        },
        {
            "type": "product_list",
            "header": {"type": "text", "text": "Kopi"},
            "body": {"text": "Pilih"},
            "action": {
                "catalog_id": "77",
                "sections": [{"title": "Arabika", "product_items": [{"product_retailer_id": "SKU"}]}],
            },
        },
    ),
    "location_request": (
        {"type": "location_request", "body": "Kirim lokasi"},
        {
            "type": "location_request_message",
            "body": {"text": "Kirim lokasi"},
            "action": {"name": "send_location"},
        },
    ),
}


@pytest.mark.parametrize("kind", INTERACTIVES)
async def test_an_interactive_message_is_sent_as_whatsapp_documents_it(sandbox: httpx.AsyncClient, kind: str) -> None:
    request, wire = INTERACTIVES[kind]
    body = {"to": NUMBER, "sources": "MSGAPP_CLOUD", "interactive": request}
    answer = await sandbox.post("/messages/send-interactive", json=body)
    assert answer.status_code == 200, answer.text
    assert (answer.json()["data"]["interactive"]["type"], answer.json()["data"]["type"]) == (kind, "interactive")
    assert (await read_sent(sandbox))["interactive"] == wire
    mail = await sandbox.post("/messages/send-interactive", json=body | {"to": "ayu@example.com", "sources": "MAIL"})
    assert (mail.status_code, mail.json()["error"]["code"]) == (409, "CHANNEL_UNSUPPORTED")


@pytest.mark.parametrize(
    ("interactive", "field"),
    [
        ({**INTERACTIVES["flow"][0], "screen": None, "data": {"a": 1}}, "interactive.data"),
        ({**INTERACTIVES["flow"][0], "button": "x" * 21}, "interactive.button"),
        (
            {
                **INTERACTIVES["product_list"][0],
                "sections": [
                    {"title": "A", "productIds": [str(n) for n in range(30)]},
                    {"title": "B", "productIds": ["x"]},
                ],
            },
            "interactive.sections",
        ),
    ],
)
async def test_an_interactive_message_that_whatsapp_refuses_is_invalid(
    sandbox: httpx.AsyncClient, interactive: Json, field: str
) -> None:
    body = {"to": NUMBER, "sources": "MSGAPP_CLOUD", "interactive": interactive}
    refused = await sandbox.post("/messages/send-interactive", json=body)
    assert refused.status_code == 400, refused.text
    assert refused.json()["error"]["details"][0]["field"].startswith(field)
