"""Drafts of replies, kept for each agent and ticket, and who is writing."""

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
        found = await actions.find_draft(tx, own, ticket_id, sari)
        assert found is not None
        assert found.body == "Halo Ayu"
        assert [agent.name for agent in await actions.list_typing(tx, own, ticket_id, sari)] == ["Budi"]
        await tx.execute(AGE, own.id)
        assert await actions.list_typing(tx, own, ticket_id, sari) == []
        await actions.save(tx, own, ticket_id, sari, "  ")
        assert await actions.find_draft(tx, own, ticket_id, sari) is None
        assert await actions.find_draft(tx, own, ticket_id, budi) is not None
