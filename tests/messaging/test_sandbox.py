"""The test environment: with a test key alone, every channel responds, reports and gets replies."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from msgspec import Struct

from sapa.db.pool import Database
from sapa.messaging.channels.interface import Source
from sapa.messaging.channels.registry import CHANNELS
from tests.conftest import Installation
from tests.factories import make_company, make_key
from tests.http.wire import eventually
from tests.messaging.conftest import connect_messaging
from tests.messaging.conversation_steps import (
    STAMPS,
    get_message,
    list_inbound,
    read_outbox,
    send,
    settled,
)

Json = dict[str, Any]

RECIPIENTS = {
    "MSGAPP_CLOUD": "+12015550100",
    "MSGAPP_COEX": "+12015550100",
    "PHOTO_SOCIAL": "sim_happy",
    "SOCIAL_NETWORK": "sim_happy",
    "SHORT_VIDEO": "sim_happy",
    "MAIL": "ayu@simulator.test",
    "WIDGET": "sim_happy",
}
SENT = {"sentAt"}
ALL = {"sentAt", "deliveredAt", "readAt"}
REPORTED = {
    "MSGAPP_CLOUD": ALL,
    "MSGAPP_COEX": ALL,
    "PHOTO_SOCIAL": ALL,
    "SOCIAL_NETWORK": ALL,
    "SHORT_VIDEO": ALL,
    "MAIL": SENT,
    "WIDGET": ALL,
}
"""The final timestamps; a read message counts as delivered, even without a report."""

YES, GAYO = {"id": "yes", "title": "Ya"}, {"id": "gayo", "title": "Gayo"}
BUTTONS: Json = {"type": "buttons", "body": "Cocok?", "buttons": [YES, {"id": "no", "title": "Tidak"}]}
LIST: Json = {"type": "list", "body": "Pilih", "button": "Buka", "sections": [{"title": "Kopi", "rows": [GAYO]}]}
TEMPLATE: Json = {"name": "hello", "language": "id", "category": "UTILITY", "body": "Halo {{1}}, apa kabar?"}
SENDS: dict[str, tuple[str, Json]] = {
    "send_message": ("/messages/send", {"message": "Halo"}),
    "send_message_template": ("/messages/send-template", {"template_name": "hello", "params": ["Ayu"]}),
    "send_message_media": ("/messages/send-media", {"mediaUrl": "https://shop.example/kopi.png"}),
    "send_message_interactive": ("/messages/send-interactive", {"interactive": BUTTONS}),
}
CANNOT = {("SHORT_VIDEO", "send_message_template")}
NAMES = {
    "message": "send_message",
    "template": "send_message_template",
    "media": "send_message_media",
    "interactive": "send_message_interactive",
}
"""The sends of `Capabilities` by their names in the API."""

Expected = tuple[str, set[str]]
HAPPENS: dict[str, Expected] = {
    "0100": ("read", ALL),
    "0101": ("delivered", {"sentAt", "deliveredAt"}),
    "0102": ("sent", SENT),
    "0103": ("read", ALL),
    "0104": ("read", ALL),
    "0105": ("delivered", {"sentAt", "deliveredAt", "failedAt"}),
    "0106": ("read", {*ALL, "repliedAt"}),
    "0107": ("read", {*ALL, "repliedAt"}),
    "0108": ("read", ALL),
    "0111": ("failed", {"sentAt", "failedAt"}),
    "0112": ("read", ALL),
    "0113": ("read", ALL),
    "0114": ("read", ALL),
    "0117": ("pending", set()),
    "0118": ("read", ALL),
    "0119": ("failed", {"sentAt", "failedAt"}),
    "0120": ("read", ALL),
    "0121": ("read", ALL),
    "0150": ("read", ALL),
    "0199": ("read", ALL),
}
FAILURES = {"0105": "131026", "0111": "131047", "0119": "131049"}
REFUSED = {"0110": "131026", "0115": "131056", "0116": "190"}
UNCLEAR = {"0117", "0118"}


class SandboxRun(Struct, frozen=True):
    """A test environment with concurrent sends to all recipients, since a simulator mostly waits."""

    client: httpx.AsyncClient
    company_id: int
    calls: dict[str, asyncio.Task[httpx.Response]]


async def open_sandbox(installation: Installation, database: Database) -> tuple[httpx.AsyncClient, int]:
    company = await make_company(database)
    key = await make_key(database, company.test)
    return connect_messaging(installation, key.raw), company.test


@pytest.fixture(scope="module")
async def numbers(installation: Installation, database: Database) -> AsyncIterator[SandboxRun]:
    """A text to every magic number."""
    client, company_id = await open_sandbox(installation, database)
    async with client:
        called = [*HAPPENS, *REFUSED]
        calls = {number: asyncio.create_task(send(client, f"+1201555{number}")) for number in called}
        yield SandboxRun(client, company_id, calls)
        await asyncio.gather(*calls.values())


@pytest.fixture(scope="module")
async def channels(installation: Installation, database: Database) -> AsyncIterator[SandboxRun]:
    """Each of the four sends over every channel."""
    client, company_id = await open_sandbox(installation, database)
    async with client:
        assert (await client.post("/templates", json=TEMPLATE)).status_code == 201
        calls = {
            f"{source} {kind}": asyncio.create_task(client.post(path, json={"to": to, "sources": source, **fields}))
            for source, to in RECIPIENTS.items()
            for kind, (path, fields) in SENDS.items()
        }
        yield SandboxRun(client, company_id, calls)
        await asyncio.gather(*calls.values())


def test_every_channel_is_sent_to() -> None:
    for name, rows in {"RECIPIENTS": set(RECIPIENTS), "REPORTED": set(REPORTED)}.items():
        missing = sorted(set(Source) - rows)
        assert missing == [], f"add a row for these channels to {name} in test_sandbox.py"
    sends = {source: {kind for kind in SENDS if (source, kind) not in CANNOT} for source in RECIPIENTS}
    declared = {source: {NAMES[kind] for kind in channel.capabilities.sends} for source, channel in CHANNELS.items()}
    assert sends == declared, "add the sends that a channel lacks to CANNOT in test_sandbox.py"
    by_number = {"MSGAPP_CLOUD", "MSGAPP_COEX", "MAIL"}  # they have magic numbers, or addresses
    for name, rows in {"PEOPLE": set(PEOPLE), "REFUSING": set(REFUSING)}.items():
        missing = sorted(set(Source) - by_number - {row.split()[0] for row in rows})
        assert missing == [], f"add a magic id of these channels to {name} in test_sandbox.py"


@pytest.mark.parametrize("kind", SENDS)
@pytest.mark.parametrize("source", RECIPIENTS)
async def test_every_send_that_a_channel_can_carry_succeeds_and_is_reported(
    channels: SandboxRun, source: str, kind: str
) -> None:
    answer = await channels.calls[f"{source} {kind}"]
    if (source, kind) in CANNOT:
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "CHANNEL_UNSUPPORTED")
        return
    assert answer.status_code == 200, answer.text
    sent = answer.json()["data"]
    assert (sent["source"], sent["ack"] >= 1) == (source, True)

    async def look() -> Json | None:
        query = {"responseId": sent["messageId2"]}
        (record,) = (await channels.client.get("/messages/requests", params=query)).json()["data"]
        return record if REPORTED[source] <= {name for name in ALL if record[name]} else None

    record = await eventually(look)
    assert (record["endpointType"], record["source"], record["failedAt"]) == (kind, source, None)
    assert REPORTED[source] == {name for name in ALL if record[name]}
    assert "error" not in record["response"]


@pytest.mark.parametrize("number", HAPPENS)
async def test_a_magic_number_runs_its_script(numbers: SandboxRun, number: str) -> None:
    status, stamps = HAPPENS[number]
    answer = await numbers.calls[number]
    assert answer.status_code == (202 if number in UNCLEAR else 200), answer.text

    async def look() -> Json | None:
        found = await get_message(numbers.client, answer.json()["data"]["messageId2"])
        is_there = found["status"] == status and stamps == {name for name in STAMPS if found[name]}
        return found if is_there else None

    message = await eventually(look)
    assert message["conflict"] is (number == "0105")
    assert (message["error"] or {}).get("code") == FAILURES.get(number, "UNCLEAR" if number == "0117" else None)


@pytest.mark.parametrize("number", REFUSED)
async def test_a_magic_number_is_refused(numbers: SandboxRun, number: str) -> None:
    answer = await numbers.calls[number]
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "SEND_FAILED")
    assert REFUSED[number] in answer.json()["error"]["message"]


async def test_only_the_message_that_was_refused_twice_is_sent_again(numbers: SandboxRun) -> None:
    await asyncio.gather(*numbers.calls.values())
    entries = await read_outbox(numbers.client)
    counts = Counter(json.loads(entry["body"])["to"][-4:] for entry in entries)
    assert counts == {**dict.fromkeys([*HAPPENS, *REFUSED], 1), "0114": 3}


async def test_each_report_of_the_shuffled_number_counts_once(numbers: SandboxRun, database: Database) -> None:
    id = (await numbers.calls["0104"]).json()["data"]["messageId2"]
    await settled(numbers.client, id, ALL)
    await wait_for_callbacks(database, numbers.company_id)
    message = await get_message(numbers.client, id)
    kinds = [event["kind"] for event in message["events"] if not event["isImplied"]]
    assert sorted(kinds) == ["delivered", "read", "sent", "sent"]  # once from the response to our call
    changes = sorted(event["sequence"] for event in message["events"] if event["sequence"] is not None)
    assert changes in ([1, 2], [1])  # one, if the reading was reported before our call had its response
    assert (message["status"], message["sequence"]) == ("read", changes[-1])


async def wait_for_callbacks(database: Database, company_id: int) -> None:
    """Waits until the simulators have posted all due callbacks and the worker has processed them."""
    due = """
        SELECT (SELECT count(*) FROM sandbox_callbacks WHERE company_id = $1
                   AND due_at <= now() + interval '10 seconds')
             + (SELECT count(*) FROM channel_callbacks WHERE company_id = $1 AND status = 'waiting')"""

    async def look() -> bool | None:
        async with database.connection() as db:
            return await db.fetchval(due, company_id) == 0 or None

    await eventually(look)


@pytest.mark.parametrize(("number", "code"), [("0112", "132001"), ("0113", "132000")])
async def test_the_magic_numbers_of_templates_refuse_templates_only(
    channels: SandboxRun, number: str, code: str
) -> None:
    body = {"to": f"+1201555{number}", "sources": "MSGAPP_CLOUD", "template_name": "hello", "params": ["Ayu"]}
    answer = await channels.client.post("/messages/send-template", json=body)
    assert (answer.status_code, code in answer.json()["error"]["message"]) == (502, True)


async def test_the_window_of_one_magic_number_is_closed(channels: SandboxRun) -> None:
    answer = await send(channels.client, "+12015550122")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "WINDOW_CLOSED")
    body = {"to": "+12015550122", "sources": "MSGAPP_CLOUD", "template_name": "hello", "params": ["Ayu"]}
    assert (await channels.client.post("/messages/send-template", json=body)).status_code == 200


async def test_a_recipient_without_a_number_and_one_with_another_are_known_by_both(
    numbers: SandboxRun, database: Database
) -> None:
    """The channel's id leads to the same contact as the number in the request."""
    known = "SELECT spellings FROM contact_identities WHERE company_id = $1 AND contact_id = (SELECT contact_id FROM messages WHERE company_id = $1 AND id = $2)"  # noqa: E501
    for number, alias in (("0120", "US.12015550120"), ("0121", "+12015550191")):
        id = (await numbers.calls[number]).json()["data"]["messageId2"]
        async with database.connection() as db:
            rows = await db.fetch(known, numbers.company_id, id)
        assert {name for row in rows for name in row["spellings"]} == {f"+1201555{number}", alias}


PEOPLE: dict[str, Expected] = {
    "SOCIAL_NETWORK sim_unread": ("delivered", {"sentAt", "deliveredAt"}),
    "SOCIAL_NETWORK sim_sent": ("sent", SENT),
    "SOCIAL_NETWORK sim_reply": ("read", {*ALL, "repliedAt"}),
    "SOCIAL_NETWORK sim_timeout": ("read", ALL),
    "PHOTO_SOCIAL sim_unread": ("sent", SENT),
    "PHOTO_SOCIAL sim_read_only": ("read", ALL),
    "PHOTO_SOCIAL sim_reply": ("read", {*ALL, "repliedAt"}),
    "SHORT_VIDEO sim_reply": ("read", {*ALL, "repliedAt"}),
    "SHORT_VIDEO sim_timeout": ("read", ALL),
    "WIDGET sim_unread": ("delivered", {"sentAt", "deliveredAt"}),
    "WIDGET sim_reply": ("read", {*ALL, "repliedAt"}),
}
REFUSING = {
    "SOCIAL_NETWORK sim_unknown": "551",
    "SOCIAL_NETWORK sim_token_expired": "190",
    "PHOTO_SOCIAL sim_pair_rate": "613",
    "SHORT_VIDEO sim_token_expired": "40105",
    "WIDGET sim_unknown": "unknown_visitor",
}


@pytest.fixture(scope="module")
async def people(installation: Installation, database: Database) -> AsyncIterator[SandboxRun]:
    """A text to recipients with an id instead of a number."""
    client, company_id = await open_sandbox(installation, database)
    async with client:
        called = {name: name.split() for name in [*PEOPLE, *REFUSING]}
        calls = {name: asyncio.create_task(send(client, to, source)) for name, (source, to) in called.items()}
        yield SandboxRun(client, company_id, calls)
        await asyncio.gather(*calls.values())


@pytest.mark.parametrize("name", PEOPLE)
async def test_a_magic_id_runs_its_script(people: SandboxRun, name: str) -> None:
    status, stamps = PEOPLE[name]
    answer = await people.calls[name]
    assert answer.status_code in ({200, 202} if "timeout" in name else {200}), answer.text

    async def look() -> Json | None:
        found = await get_message(people.client, answer.json()["data"]["messageId2"])
        return found if found["status"] == status and stamps == {each for each in STAMPS if found[each]} else None

    assert (await eventually(look))["error"] is None


@pytest.mark.parametrize("name", REFUSING)
async def test_a_magic_id_is_refused(people: SandboxRun, name: str) -> None:
    answer = await people.calls[name]
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "SEND_FAILED")
    message = (await people.client.get("/messages/requests", params={"limit": 100})).json()["data"]
    errors = [record["response"]["error"] for record in message if "error" in record["response"]]
    assert answer.json()["error"] in errors


CHOOSERS = {"MSGAPP_CLOUD": "+12015550107", "SOCIAL_NETWORK": "sim_choice", "WIDGET": "sim_choice"}


@pytest.fixture(scope="module")
async def choices(installation: Installation, database: Database) -> AsyncIterator[SandboxRun]:
    """Buttons and a list to a recipient who chooses."""
    client, company_id = await open_sandbox(installation, database)
    async with client:
        calls = {
            f"{source} {content['type']}": asyncio.create_task(
                client.post("/messages/send-interactive", json={"to": to, "sources": source, "interactive": content})
            )
            for source, to in CHOOSERS.items()
            for content in (BUTTONS, LIST)
        }
        yield SandboxRun(client, company_id, calls)
        await asyncio.gather(*calls.values())


@pytest.mark.parametrize("source", CHOOSERS)
@pytest.mark.parametrize(("content", "first"), [(BUTTONS, YES), (LIST, GAYO)], ids=["buttons", "list"])
async def test_the_first_choice_is_made(
    choices: SandboxRun, database: Database, source: str, content: Json, first: Json
) -> None:
    answer = await choices.calls[f"{source} {content['type']}"]
    assert answer.status_code == 200, answer.text
    sent = answer.json()["data"]
    await settled(choices.client, sent["messageId2"], {"repliedAt"})
    inbound = await list_inbound(database, choices.company_id)
    (reply,) = [each for each in inbound if (each["source"], each["quoted"]) == (source, sent["messageId"])]
    assert {name: reply["interaction"][name] for name in first} == first
