"""The status of a message: every order of reports, concurrent workers, watermarks, replies."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import httpx
import msgspec
import pytest

from sapa.access.actions import get_company, read_clock
from sapa.db.pool import Database
from sapa.messaging.channels.interface import (
    Identity,
    MessageAmendment,
    ReceivedItem,
    SendRefusal,
    Source,
    Status,
    StatusReport,
)
from sapa.messaging.contacts.types import Contact
from sapa.messaging.inbound import actions as inbox
from sapa.messaging.messages import actions as messages
from sapa.values.company import Company
from tests.factories import Environments
from tests.messaging.send_steps import (
    NUMBER,
    await_message,
    get_message,
    get_record,
    magic,
    send,
)

STATUSES: tuple[Status, ...] = ("sent", "delivered", "read", "failed")
QUIET = magic(102)
"""A recipient without reports after `sent`."""

Json = dict[str, Any]


@pytest.fixture
async def owner(database: Database, company: Environments) -> Company:
    async with database.connection() as db:
        return await get_company(db, company.test)


async def apply_report(
    database: Database, owner: Company, report: StatusReport, source: Source = Source.MSGAPP_CLOUD
) -> int:
    """Returns the number of messages that changed."""
    async with database.transaction() as tx:
        now = (await read_clock(tx, owner.id)).now
        return len(await messages.apply(tx, owner, source, report, now))


async def list_updates(database: Database, owner: Company, id: str) -> list[Json]:
    """The announced status changes of a message, in order."""
    async with database.connection() as db:
        rows = await db.fetch(
            "SELECT body FROM events WHERE company_id = $1 AND resource_id = $2 AND kind = 'message.status.updated'"
            " ORDER BY number",
            owner.id,
            id,
        )
    return [msgspec.json.decode(row[0]) for row in rows]


def expect(order: Sequence[Status]) -> tuple[str, bool, list[str]]:
    """Status, conflict and announced statuses of a sent message."""
    status, conflict, announced = "sent", False, ["sent"]
    ranks = {"sent": 1, "delivered": 2, "read": 3}
    for reported in order:
        before = status
        if reported == "failed":
            status = "failed" if status == "sent" else status
        elif status == "failed":
            status, conflict = (status, conflict) if reported == "sent" else (reported, True)
        elif ranks[reported] > ranks[status]:
            status = reported
        announced += [status] if status != before else []
    return status, conflict, announced


async def test_every_order_with_duplicates_ends_as_the_rules_say(
    sandbox: httpx.AsyncClient, database: Database, owner: Company
) -> None:
    for order in permutations(STATUSES):
        message = await send(sandbox, to=QUIET)
        id = message["messageId2"]
        at = datetime.fromisoformat(message["sentAt"])
        for number, status in enumerate(order):
            report = StatusReport(status, at + timedelta(milliseconds=number + 1), reference=id, code="131026")
            for _ in range(2):
                await apply_report(database, owner, report)
        found, (final, conflict, announced) = await get_message(sandbox, id), expect(order)
        assert (found["status"], found["conflict"]) == (final, conflict), order
        assert (found["readAt"], found["deliveredAt"]) != (None, None)
        assert found["sentAt"] == message["sentAt"]
        assert found["sentAt"] <= found["deliveredAt"] <= found["readAt"]
        assert (found["failedAt"] is not None) == (conflict or final == "failed")
        updates = await list_updates(database, owner, id)
        assert [update["status"] for update in updates] == announced
        assert [update["sequence"] for update in updates] == list(range(1, len(announced) + 1))
        assert [update["previousStatus"] for update in updates] == ["pending", *announced[:-1]]
        assert found["sequence"] == len(announced)


async def test_two_workers_with_the_same_report_change_it_once(
    sandbox: httpx.AsyncClient, database: Database, owner: Company
) -> None:
    message = await send(sandbox, to=QUIET)
    report = StatusReport("read", datetime.now(UTC), message_id=message["messageId"])
    changed = await asyncio.gather(*(apply_report(database, owner, report) for _ in range(8)))
    assert sum(changed) == 1
    updates = await list_updates(database, owner, message["messageId2"])
    assert [update["status"] for update in updates] == ["sent", "read"]
    events = (await get_message(sandbox, message["messageId2"]))["events"]
    assert [event["kind"] for event in events].count("read") == 1


async def test_unreported_steps_are_implied(sandbox: httpx.AsyncClient, database: Database, owner: Company) -> None:
    message = await send(sandbox, to=QUIET)
    await apply_report(database, owner, StatusReport("read", datetime.now(UTC), reference=message["messageId2"]))
    events = (await get_message(sandbox, message["messageId2"]))["events"]
    announced = {event["kind"]: event["isImplied"] for event in events}
    assert (announced["delivered"], announced["read"]) == (True, False)


async def test_a_failure_that_is_reported_later_replaces_the_response(
    sandbox: httpx.AsyncClient, database: Database, owner: Company
) -> None:
    message = await send(sandbox, to=QUIET)
    report = StatusReport(
        "failed",
        datetime.now(UTC),
        reference=message["messageId2"],
        code="131047",
        reason="Re-engagement message",
        category="window",
    )
    await apply_report(database, owner, report)
    record = await get_record(sandbox, message["messageId2"])
    assert record["response"]["error"]["code"] == "SEND_FAILED"
    assert "Re-engagement message" in record["response"]["error"]["message"]
    assert "data" not in record["response"]
    found = await get_message(sandbox, message["messageId2"])
    assert (found["ack"], found["failedAt"], found["sentAt"]) == (-1, record["failedAt"], record["sentAt"])
    error = {"code": "131047", "message": "Re-engagement message", "category": "window", "retryable": False}
    assert found["error"] == error
    details = [{"category": "window", "providerCode": "131047", "retryable": False}]
    assert record["response"]["error"]["details"] == details


async def test_a_refusal_that_is_stored_twice_changes_nothing_more(
    sandbox: httpx.AsyncClient, database: Database, owner: Company
) -> None:
    id, outcomes = (await send(sandbox, 202, to=magic(117)))["messageId2"], []
    refusal = SendRefusal("131026", "Undeliverable", "recipient")
    for _ in range(2):
        async with database.transaction() as tx:
            now = (await read_clock(tx, owner.id)).now
            outcomes.append(await messages.refuse(tx, owner, id, refusal, now))
    assert [outcome is not None for outcome in outcomes] == [True, False]
    assert [update["status"] for update in await list_updates(database, owner, id)] == ["failed"]


async def test_a_report_of_an_unknown_message_or_of_another_company_s_changes_nothing(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, owner: Company
) -> None:
    message = await send(sandbox, to=QUIET)
    async with database.connection() as db:
        other = await get_company(db, company.live)
    at = datetime.now(UTC)
    for stranger in (
        StatusReport("read", at, message_id="wamid.unknown"),
        StatusReport("read", at, reference="not one of ours"),
        StatusReport("read", at, reference=message["messageId2"].upper()),
        StatusReport("read", at, watermark=at),
    ):
        assert await apply_report(database, owner, stranger) == 0
    assert await apply_report(database, other, StatusReport("read", at, reference=message["messageId2"])) == 0
    assert (await get_message(sandbox, message["messageId2"]))["readAt"] is None


async def test_a_watermark_covers_all_messages_before_it_and_none_after(
    sandbox: httpx.AsyncClient, database: Database, owner: Company
) -> None:
    other = await send(sandbox, to="sim_unread", sources="SOCIAL_NETWORK")
    sent = [await send(sandbox, to="sim_sent", sources="SOCIAL_NETWORK") for _ in range(3)]
    mark = datetime.fromisoformat(sent[1]["sentAt"])
    report = StatusReport("read", mark, watermark=mark, recipient=Identity("psid", "sim_sent"))
    assert await apply_report(database, owner, report, Source.SOCIAL_NETWORK) == 2
    assert await apply_report(database, owner, report, Source.SOCIAL_NETWORK) == 0
    found = [(await get_message(sandbox, each["messageId2"]))["status"] for each in [*sent, other]]
    assert found[:3] == ["read", "read", "sent"]
    assert found[3] != "read"


def build_inbound(**fields: Any) -> ReceivedItem:
    given: Json = {
        "message_id": f"wamid.{datetime.now(UTC).timestamp()}",
        "sender": [Identity("wa_id", NUMBER.removeprefix("+"))],
        "at": datetime.now(UTC) + timedelta(seconds=1),
        "type": "text",
        "body": "OK",
    }
    return ReceivedItem(**{**given, **fields})


async def receive(database: Database, owner: Company, inbound: ReceivedItem) -> Any:
    async with database.transaction() as tx:
        return await inbox.receive(tx, owner, "chan_x", Source.MSGAPP_CLOUD, inbound, Contact("ctc_x", None, []))


async def test_the_message_that_is_quoted_was_answered_and_so_delivered(
    sandbox: httpx.AsyncClient, database: Database, owner: Company
) -> None:
    first, second = [await send(sandbox, to=QUIET) for _ in range(2)]
    inbound = build_inbound(sender=[Identity("wa_id", QUIET.removeprefix("+"))], quoted=first["messageId"])
    assert (await receive(database, owner, inbound)).direction == "in"
    answered, other = [await get_message(sandbox, each["messageId2"]) for each in (first, second)]
    assert answered["repliedAt"]
    assert (answered["status"], answered["readAt"]) == ("delivered", None)
    assert (other["repliedAt"], other["status"]) == (None, "sent")
    assert (await get_record(sandbox, first["messageId2"]))["repliedAt"] == answered["repliedAt"]


async def test_without_a_quotation_the_latest_one_was_answered_once(
    sandbox: httpx.AsyncClient, database: Database, owner: Company
) -> None:
    first, second = [await send(sandbox, to=QUIET) for _ in range(2)]
    replied = []
    for _ in range(2):
        await receive(database, owner, build_inbound(sender=[Identity("phone", QUIET)]))
        replied += [(await get_message(sandbox, each["messageId2"]))["repliedAt"] for each in (first, second)]
        await asyncio.sleep(0.01)
    assert replied[1] is not None
    assert replied == [None, replied[1]] * 2


async def test_automatic_mail_is_no_reply(sandbox: httpx.AsyncClient, database: Database, owner: Company) -> None:
    message = await send(sandbox, to=QUIET)
    sender = [Identity("phone", QUIET)]
    await receive(database, owner, build_inbound(sender=sender, is_automatic=True))
    await receive(database, owner, build_inbound(sender=sender, is_imported=True))
    assert (await get_message(sandbox, message["messageId2"]))["repliedAt"] is None


async def test_an_inbound_message_is_stored_and_announced_once(
    sandbox: httpx.AsyncClient, database: Database, owner: Company
) -> None:
    inbound = build_inbound(message_id="wamid.once")
    received = await asyncio.gather(*(receive(database, owner, inbound) for _ in range(5)))
    (message,) = [each for each in received if each is not None]
    assert (message.status, message.client_number, message.feature_source) == ("received", NUMBER, "CUSTOMER")
    async with database.connection() as db:
        announced = await db.fetchval(
            "SELECT count(*) FROM events WHERE company_id = $1 AND resource_id = $2 AND kind = 'message.received'",
            owner.id,
            message.message_id2,
        )
    assert announced == 1


async def test_an_echo_of_our_own_message_is_not_another_message(
    sandbox: httpx.AsyncClient, database: Database, owner: Company
) -> None:
    message = await send(sandbox, to=QUIET)
    sender = [Identity("phone", QUIET)]
    by_id = build_inbound(message_id=message["messageId"], sender=sender, is_echo=True)
    by_reference = build_inbound(message_id="wamid.other", reference=message["messageId2"], sender=sender, is_echo=True)
    assert await receive(database, owner, by_id) is None
    assert await receive(database, owner, by_reference) is None
    foreign = await receive(database, owner, build_inbound(sender=sender, is_echo=True, body="From the phone"))
    assert (foreign.direction, foreign.feature_source, foreign.status) == ("out", "BUSINESS_APP", "delivered")


async def test_amendments_are_stored_once(sandbox: httpx.AsyncClient, database: Database, owner: Company) -> None:
    message = await receive(database, owner, build_inbound(message_id="wamid.edited", body="Halo"))
    at = datetime.now(UTC)
    for _ in range(2):
        async with database.transaction() as tx:
            for amendment in (
                MessageAmendment("edit", "wamid.edited", at, "Halo semua"),
                MessageAmendment("reaction", "wamid.edited", at, "👍"),
                MessageAmendment("revoke", "wamid.edited", at),
            ):
                await messages.amend(tx, owner, Source.MSGAPP_CLOUD, amendment)
    found = await get_message(sandbox, message.message_id2)
    assert found["body"] == "Halo semua"
    assert [(event["kind"], event["detail"]) for event in found["events"]] == [
        ("edited", "Halo semua"),
        ("reacted", "👍"),
        ("revoked", None),
    ]


async def test_reports_out_of_order_and_duplicated(sandbox: httpx.AsyncClient) -> None:
    message = await send(sandbox, to=magic(104))
    found = await await_message(sandbox, message["messageId2"], lambda seen: seen["readAt"])
    assert found["status"] == "read"
    assert found["sentAt"] <= found["deliveredAt"] <= found["readAt"]


async def test_a_message_that_arrives_after_it_failed(sandbox: httpx.AsyncClient) -> None:
    message = await send(sandbox, to=magic(105))
    found = await await_message(sandbox, message["messageId2"], lambda seen: seen["conflict"])
    assert (found["status"], found["ack"]) == ("delivered", 2)
    assert found["failedAt"]
    assert found["deliveredAt"]


async def test_another_company_does_not_see_a_message(sandbox: httpx.AsyncClient, live: httpx.AsyncClient) -> None:
    message = await send(sandbox)
    answer = await live.get(f"/messages/{message['messageId2']}")
    assert answer.status_code == 404
