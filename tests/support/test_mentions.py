"""Whom notes mention, until they open the ticket."""

from sapa.access.actions import get_company
from sapa.db.pool import Database
from sapa.support.mentions import actions
from tests.factories import Environments
from tests.support.ticket_steps import Desk


async def test_a_note_tells_whom_it_mentions(desk: Desk, database: Database, company: Environments) -> None:
    sari, dewi, sa, robot = [
        await desk.create_agent(name, type)
        for name, type in (("Sari", "human"), ("Sari Dewi", "human"), ("Sa", "human"), ("Robot", "ai"))
    ]
    first, second = await desk.receive(), await desk.receive("Halo", "+628123456799")

    async def count() -> list[int]:
        async with database.connection() as db:
            return [await actions.count(db, company.test, id) for id in (sari, dewi, sa, robot)]

    await desk.act(first, "notes", 201, agentId=sa, body="@sari dewi, @Sa dan @Robot; budi@sari.example")
    assert await count() == [0, 1, 0, 0], "the longest name, no AI, not the author, no email address"
    await desk.act(first, "notes", 201, agentId=dewi, body="@Sari sudah? @Sarita")
    await desk.act(second, "notes", 201, agentId=sari, body="Belum, @Sari Dewi.")
    assert await count() == [1, 2, 0, 0], "a ticket counts once"
    async with database.transaction() as tx:
        await actions.move(tx, await get_company(tx, company.test), second["id"], first["id"])
    assert await count() == [1, 1, 0, 0]
    place = f"/agents/{dewi}/mentions"
    listed = (await desk.client.get(place)).json()
    assert [(one["ticketId"], one["agentId"]) for one in listed["data"]] == [(first["id"], dewi)]
    assert listed["meta"]["total"] == 1
    assert (await desk.client.delete(f"{place}/{first['id']}")).status_code == 204
    assert await count() == [1, 0, 0, 0]
