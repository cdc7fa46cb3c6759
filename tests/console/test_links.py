"""One-time links: the first owner, invitations, forgotten passwords."""

import asyncio

import pytest

from sapa.db.pool import Database
from sapa.people import actions
from sapa.people.types import Role
from tests.conftest import Installation
from tests.console.people import PASSWORD, make_person, open_browser, read_token
from tests.factories import Environments

CHOICE = {"password": PASSWORD, "again": PASSWORD}


async def make_setup_link(database: Database, company: Environments) -> str:
    async with database.transaction() as tx:
        return await actions.make_setup_link(tx, company.live)


async def test_the_first_owner_comes_in_by_the_link_once(
    installation: Installation, database: Database, company: Environments
) -> None:
    link = await make_setup_link(database, company)
    newcomer = {"email": f"first-{company.live}@toko.example", "name": "Sari", **CHOICE}
    async with open_browser(installation) as client:
        assert company.name in (await client.get(f"/link/{link}")).text
        answers = await asyncio.gather(*(client.post(f"/link/{link}", data=newcomer) for _ in range(5)))
        assert sorted(answer.status_code for answer in answers) == [303, 404, 404, 404, 404]
        assert (await client.get("/live/people")).status_code == 200
        assert (await client.get(f"/link/{link}")).status_code == 404


@pytest.mark.parametrize(
    ("choice", "complaint"),
    [
        ({"password": "short", "again": "short"}, "must have 12 to 256 characters"),
        ({"password": PASSWORD, "again": "another password"}, "is not the same password"),
        ({"password": "123456789012", "again": "123456789012"}, "would be guessed first"),
        ({"password": "aaaaaaaaaaaa", "again": "aaaaaaaaaaaa"}, "would be guessed first"),
    ],
)
async def test_a_password_that_will_not_do_leaves_the_link_usable(
    installation: Installation, database: Database, company: Environments, choice: dict[str, str], complaint: str
) -> None:
    link = await make_setup_link(database, company)
    newcomer = {"email": f"first-{company.live}@toko.example", "name": "Sari"}
    async with open_browser(installation) as client:
        answer = await client.post(f"/link/{link}", data=newcomer | choice)
        assert answer.status_code == 400
        assert complaint in answer.text
        assert f'value="{newcomer["email"]}"' in answer.text
        assert (await client.post(f"/link/{link}", data=newcomer | CHOICE)).status_code == 303


async def test_an_invited_agent_chooses_a_password_and_a_new_link_ends_the_old_sessions(
    installation: Installation, database: Database, company: Environments
) -> None:
    email = await make_person(database, company)
    async with open_browser(installation, email) as owner:
        token = await read_token(owner)
        invited = f"agent-{company.live}@toko.example"
        form = {"token": token, "name": "Budi", "email": invited, "role": "agent"}
        page = (await owner.post("/live/people", data=form)).text
        link = page.partition("/console/link/")[2].partition("<")[0]
        assert (await owner.post("/live/people", data=form)).status_code == 409
        async with open_browser(installation) as agent:
            assert (await agent.post(f"/link/{link}", data=CHOICE)).status_code == 303
            assert (await agent.get("/live")).status_code == 200
            member = (await owner.get("/live/people")).text.rpartition("/people/")[0].rpartition("/people/")[2]
            page = (await owner.post(f"/live/people/{member.partition('/')[0]}/link", data={"token": token})).text
            link = page.partition("/console/link/")[2].partition("<")[0]
            async with open_browser(installation) as elsewhere:
                assert (await elsewhere.post(f"/link/{link}", data=CHOICE)).status_code == 303
            assert (await agent.get("/live")).status_code == 303


async def test_the_last_owner_stays(installation: Installation, database: Database, company: Environments) -> None:
    email = await make_person(database, company)
    async with open_browser(installation, email) as owner:
        token = await read_token(owner)
        id = (await owner.get("/live/people")).text.partition("/people/")[2].partition("/")[0]
        for action, form in (("role", {"role": "agent"}), ("remove", {})):
            answer = await owner.post(f"/live/people/{id}/{action}", data={"token": token, **form})
            assert answer.status_code == 409
        await make_person(database, company, Role.OWNER)
        answer = await owner.post(f"/live/people/{id}/role", data={"token": token, "role": "agent"})
        assert answer.status_code == 303
        assert (await owner.get("/live/keys")).status_code == 403
