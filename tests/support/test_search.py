"""The search over tickets: people, numbers, ids and words of messages."""

from typing import Any

import pytest

from sapa.db.pool import Database
from sapa.support.search.queries import MAX_FOUND
from tests.conftest import Installation
from tests.factories import Environments, make_company, make_key
from tests.http.samples import root_of
from tests.messaging.conftest import connect_messaging
from tests.messaging.inbound.test_actions import SENDERS
from tests.support.ticket_steps import Desk

Json = dict[str, Any]

COPY = """
    INSERT INTO messages (company_id, id, direction, source, connection_id, identity_kind, identity, client_number,
                          connected_number, type, body, feature_source, status, created_at, ticket_id)
    SELECT company_id, gen_random_uuid()::text, direction, source, connection_id, identity_kind, identity,
           client_number, connected_number, type, 'kata umum ' || n, feature_source, status, created_at, ticket_id
      FROM messages, generate_series(1, 11000) n
     WHERE company_id = $1 AND id = $2"""

# Contacts of one name, each with a ticket that is older than all others; and newer tickets of the first contact.
NAMESAKES = """
    INSERT INTO contacts (company_id, id, name)
    SELECT $1::bigint, $2 || '_' || n, $2 || ' ' || n FROM generate_series(1, $3::int) n"""
TICKETS = """
    INSERT INTO tickets (company_id, id, source, connection_id, contact_id, identity, client_number, connected_number,
                         status, last_message_at, silent_since, resolved_at, resolved_reason, created_at, updated_at)
    SELECT company_id, 'tkt_' || lpad(ascii($2) || lpad(n::text, 6, '0'), 26, '0'), source, connection_id,
           CASE WHEN $2 = '' THEN contact_id ELSE $2 || '_' || n END, identity || n, client_number, connected_number,
           'resolved', at, at, at, 'manual', at, at
      FROM tickets, generate_series(1, $3::int) n,
           LATERAL (SELECT last_message_at + CASE WHEN $2 = '' THEN n ELSE -n END * interval '1 second' AS at) AS t
     WHERE company_id = $1 AND id = $4"""
COUNT = "INSERT INTO counter_deltas (company_id, counter, cell, delta) VALUES ($1, 'tickets', 'resolved/MAIL', $2)"


async def search(desk: Desk, query: str) -> list[str]:
    return [match["ticket"]["id"] for match in await desk.get("/tickets/search", query=query)]


@pytest.mark.smoke
async def test_tickets_are_found_by_people_numbers_ids_and_words(desk: Desk) -> None:
    phone = await desk.receive("Apakah Kopi Gayo masih ada?", sender="+6281298765432")
    visitor = await desk.receive("Halo", sender=SENDERS["SHORT_VIDEO"], source="SHORT_VIDEO")
    root = f"{root_of(desk.client)}/customer/v1"
    await desk.client.put(f"{root}/customers/{phone['customerId']}", json={"firstName": "Ayu", "lastName": "Lestari"})
    queries = ("ayu les", "LESTARI", "lestari ayu", "0812 9876", "98765432", phone["id"], phone["customerId"])
    for query in (*queries, "kopi gayo", "GAYO", "ada ga kopi"):
        assert await search(desk, query) == [phone["id"]], query
    assert await search(desk, SENDERS["SHORT_VIDEO"]) == [visitor["id"]]
    matches = await desk.get("/tickets/search", query="masih ada")
    assert [match["text"] for match in matches] == ["Apakah Kopi Gayo masih ada?"]
    for query in ("100%", "tidak ada yang cocok", "gayo toraja", "___"):
        assert await search(desk, query) == []
    for query in ("ab", "  a ", ""):
        assert (await desk.client.get("/tickets/search", params={"query": query})).status_code == 400


async def test_the_newest_come_first_and_common_words_hide_no_rare_ones(
    desk: Desk, database: Database, company: Environments
) -> None:
    first = await desk.receive("Kata langka: zamrud", sender="+628111111151")
    second = await desk.receive("Kata umum", sender="+628111111152")
    async with database.connection() as db:
        await db.execute(COPY, company.test, second["messages"][0]["messageId2"])
    assert await search(desk, "kata") == [second["id"], first["id"]]
    assert await search(desk, "zamrud") == [first["id"]]
    assert await search(desk, "kata umum 10999") == [second["id"]]
    assert len(await search(desk, "umum")) <= MAX_FOUND


async def test_a_name_that_very_many_have_is_found_whole_or_the_answer_says_so(
    desk: Desk, database: Database, company: Environments
) -> None:
    ticket = await desk.receive("Halo", sender="+628111111154")

    async def look(name: str) -> tuple[list[int], bool]:
        answer = (await desk.client.get("/tickets/search", params={"query": name})).json()
        return [int(match["ticket"]["id"][-6:]) for match in answer["data"]], answer["meta"]["newestOnly"]

    async with database.connection() as db:
        for name, number in (("siti", 700), ("budi", 2_600)):
            await db.execute(NAMESAKES, company.test, name, number)
            await db.execute(TICKETS, company.test, name, number, ticket["id"])
            await db.execute(COUNT, company.test, number)
        newest = list(range(1, MAX_FOUND + 1)), False
        assert [await look(name) for name in ("siti", "budi")] == [newest, newest]
        await db.execute(TICKETS, company.test, "", 10_001, ticket["id"])
        await db.execute(COUNT, company.test, 10_001)
    assert await look("siti") == newest
    assert await look("budi") == ([], True)
    assert await look("budi 2599") == ([2599], False)


async def test_nothing_of_another_company_is_found(desk: Desk, installation: Installation, database: Database) -> None:
    await desk.receive("Rahasia perusahaan", sender="+628111111153")
    other = await make_key(database, (await make_company(database)).test)
    async with connect_messaging(installation, other.raw) as client:
        assert await search(Desk(client), "rahasia") == []
        assert await search(Desk(client), "8111111153") == []
