"""A visitor who types is seen by agents, until the message comes."""

from sapa.db.pool import Database
from tests.conftest import Installation
from tests.console.people import make_person, open_browser
from tests.factories import Environments, make_key
from tests.http.wire import eventually
from tests.messaging.conftest import connect_messaging
from tests.messaging.shop_site import Browser

TYPING, IN_ROW = "The customer is typing", "Typing…"


async def test_agents_see_that_a_visitor_is_typing(
    installation: Installation, database: Database, company: Environments, page: Browser
) -> None:
    await page.join()
    assert (await page.send("Halo")).status_code == 200
    async with connect_messaging(installation, (await make_key(database, company.test)).raw) as api:

        async def find_ticket() -> str | None:
            found = (await api.get("/tickets")).json()["data"]
            return str(found[0]["id"]) if found else None

        ticket = await eventually(find_ticket)
    async with open_browser(installation, await make_person(database, company)) as agent:
        assert TYPING not in (await agent.get(f"/test/inbox/{ticket}")).text
        assert (await page.call("POST", "typing")).status_code == 204
        assert TYPING in (await agent.get(f"/test/inbox/{ticket}")).text
        assert IN_ROW in (await agent.get("/test/inbox?view=all")).text
        assert (await page.send("Masih ada?")).status_code == 200
        assert TYPING not in (await agent.get(f"/test/inbox/{ticket}")).text
        assert IN_ROW not in (await agent.get("/test/inbox?view=all")).text
    page.token = None
    assert (await page.call("POST", "typing")).status_code == 401
