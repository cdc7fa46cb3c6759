"""Drafts of replies and notes, kept for each agent and ticket, and who is writing."""

import httpx

from sapa.access.actions import get_company
from sapa.db.pool import Database
from sapa.support.drafts import actions
from tests.factories import Environments
from tests.support.ticket_steps import Desk

AGE = "UPDATE reply_drafts SET updated_at = now() - interval '9 seconds' WHERE company_id = $1"


async def test_drafts_are_kept_for_each_agent(desk: Desk, database: Database, company: Environments) -> None:
    sari, budi = await desk.create_agent(), await desk.create_agent("Budi")
    ticket_id = (await desk.receive())["id"]
    async with database.transaction() as tx:
        own = await get_company(tx, company.test)
        await actions.save(tx, own, ticket_id, sari, "Halo\0 Ayu")
        await actions.save(tx, own, ticket_id, budi, "Baik")
    async with database.transaction() as tx:
        found = await actions.find_typed(tx, own, ticket_id, sari)
        assert found is not None
        assert found.body == "Halo Ayu"
        assert [agent.name for agent in await actions.list_typing(tx, own, ticket_id, sari)] == ["Budi"]
        await tx.execute(AGE, own.id)
        assert await actions.list_typing(tx, own, ticket_id, sari) == []
        await actions.save(tx, own, ticket_id, sari, "  ")
        assert await actions.find_typed(tx, own, ticket_id, sari) is None
        assert await actions.find_typed(tx, own, ticket_id, budi) is not None


async def test_a_program_suggests_a_reply(desk: Desk) -> None:
    sari, budi = await desk.create_agent(), await desk.create_agent("Budi")
    ticket_id = (await desk.receive())["id"]
    place = f"/tickets/{ticket_id}/drafts"

    async def put(agent_id: int, body: str) -> httpx.Response:
        return await desk.client.put(f"{place}/{agent_id}", json={"body": body})

    async def list_drafts() -> list[tuple[int, str]]:
        return [(draft["agentId"], draft["body"]) for draft in (await desk.client.get(place)).json()["data"]]

    assert (await put(sari, "Halo")).json()["data"]["agentId"] == sari
    assert [(await put(*draft)).status_code for draft in ((budi, "Baik"), (sari, "Halo Ayu"))] == [200, 200]
    assert await list_drafts() == [(sari, "Halo Ayu"), (budi, "Baik")]
    assert (await put(sari, "")).status_code == 400
    assert (await put(budi + 1, "Halo")).status_code == 404
    assert [(await desk.client.delete(f"{place}/{id}")).status_code for id in (sari, sari, budi + 1)] == [204, 204, 404]
    assert await list_drafts() == [(budi, "Baik")]


async def test_a_note_is_kept_beside_the_reply_and_nobody_sees_it_being_written(
    desk: Desk, database: Database, company: Environments
) -> None:
    sari, budi = await desk.create_agent(), await desk.create_agent("Budi")
    ticket_id = (await desk.receive())["id"]

    async def read() -> tuple[str, str] | None:
        async with database.connection() as db:
            found = await actions.find_typed(db, own, ticket_id, sari)
        return None if found is None else (found.body, found.note)

    async with database.connection() as db:
        own = await get_company(db, company.test)
    for save, text, expected in (
        (actions.save_note, "Cek stok", ("", "Cek stok")),
        (actions.save, "Sebentar", ("Sebentar", "Cek stok")),
        (actions.save_note, " ", ("Sebentar", "")),
        (actions.save_note, "Cek lagi", ("Sebentar", "Cek lagi")),
        (actions.save, "", ("", "Cek lagi")),
        (actions.save_note, "", None),
    ):
        async with database.transaction() as tx:
            await save(tx, own, ticket_id, sari, text)
        assert await read() == expected
        async with database.connection() as db:
            typing = await actions.list_typing(db, own, ticket_id, budi)
        assert [agent.name for agent in typing] == (["Sari"] if expected and expected[0] else [])
